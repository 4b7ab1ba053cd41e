"""The pages for people with a terminal, followed from the first line to the last."""

from __future__ import annotations

import re

from tests.first_half_hour.page import Page, Shell

BOTH_RUN = r"(?s)(running|waiting).*(running|waiting)"
REPORT = r"gpushare: (\S+): .* iterations, leases: (\d+)"


def reports(screen: str) -> dict[str, int]:
    """How many leases each job had, by its name."""
    return {name: int(leases) for name, leases in re.findall(REPORT, screen)}


def losses(screen: str) -> list[str]:
    """The losses that jobs printed."""
    return sorted(re.findall(r"loss ([\d.]+)", screen))


def test_quick_start(shell: Shell) -> None:
    page = Page("guide/quick_start.md")
    assert not re.search(r"^fail", shell.follow(page, "1."), re.MULTILINE)
    shell.follow(page, "2.")
    shell.follow(page, "3.")
    shell.run_until("gpushare status", says=BOTH_RUN)
    watched = shell.follow(page, "4.")
    assert "first" in watched
    assert re.search(r"job \d+ \(second\) is \w+:", watched)
    shell.follow(page, "5.")
    assert set(reports(shell.screen)) == {"first", "second"}
    assert "goes on unmanaged" not in shell.screen
    shared = losses(shell.screen)
    alone = shell.run("GPUSHARE_DISABLE=1 python train.py\n")
    assert shared == losses(alone) * 2


def test_without_a_gpu_a_first_look(shell: Shell) -> None:
    page = Page("how_to/no_gpu.md")
    assert not re.search(r"^fail", shell.follow(page, "1."), re.MULTILINE)
    assert "identical" in shell.follow(page, "2.")


def test_without_a_gpu_two_jobs_of_ones_own(shell: Shell) -> None:
    page = Page("how_to/no_gpu.md")
    shell.follow(page, "3.")
    shell.run_until("gpushare status", says=BOTH_RUN)
    watched = shell.follow(page, "4.")
    assert re.search(r"job \d+ \(two\) is \w+:", watched)
    assert set(reports(shell.screen)) == {"one", "two"}
    assert not re.search(r"moved 0 B out", shell.screen), "the budget was no narrow one"
    assert "goes on unmanaged" not in shell.screen
    assert "identical" in shell.follow(page, "5.")


def test_sweep(shell: Shell) -> None:
    page = Page("how_to/sweep.md")
    shell.follow(page, "1.")
    shell.follow(page, "2.")
    shell.run_until("gpushare ps --group sweep -o name", says=r"(rate-\S+\s+){6}")
    changed = shell.follow(page, "3.")
    assert re.search(r"rate-\S+.*paused", changed), changed
    assert "fair" in shell.follow(page, "4.")
    ended = shell.follow(page, "5.")
    assert len(losses(ended)) == 6
    assert len(set(re.findall(r"rate-\de-\d", ended))) == 6
    assert re.search(r"^sweep +6\b", ended, re.MULTILINE), "usage has the sum"
    assert "goes on unmanaged" not in shell.screen


def test_server_beside_training(shell: Shell) -> None:
    page = Page("how_to/server.md")
    for section in ("1.", "2."):
        shell.follow(page, section)
    shell.follow(page, "3.")
    shell.follow(page, "4.")
    answers = re.findall(r"^(-?\d+\.\d+) after", shell.screen, re.MULTILINE)
    assert len(answers) == 40
    assert set(reports(shell.screen)) == {"server", "trainer"}
    assert "has no effect" not in shell.screen
    assert "goes on unmanaged" not in shell.screen
    alone = shell.run("seq 40 | GPUSHARE_DISABLE=1 python serve.py\n")
    assert answers == re.findall(r"^(-?\d+\.\d+) after", alone, re.MULTILINE)
