"""What shells offer for the words of a command: commands, options, running jobs and groups."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python.conftest import Completed, clean_environment
from tests.python.fake_coordinator import FakeCoordinator, make_job, make_report


def _complete(*words: str, socket: str, shell: str = "bash") -> Completed:
    """Asks as a shell does for what could stand instead of the last word."""
    asking = {"_GPUSHARE_COMPLETE": f"complete_{shell}"}
    if shell == "bash":
        asking |= {"COMP_WORDS": "\n".join(("gpushare", *words)), "COMP_CWORD": str(len(words))}
    else:
        asking |= {
            "_TYPER_COMPLETE_ARGS": " ".join(("gpushare", *words)),
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
    return subprocess.run(
        [sys.executable, "-m", "gpushare"],
        env=clean_environment(socket=socket, config=os.devnull) | asking,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def coordinator(tmp_path: Path) -> FakeCoordinator:
    report = make_report()
    mine = {"uid": os.getuid(), "group": "sweep"}
    report["devices"][0]["jobs"] = [
        make_job(3, "gpt", **mine),
        make_job(4, "vit", **mine),
        make_job(5, "twin"),
        make_job(6, "twin"),
        make_job(7, "$(reboot)", group="the others'"),
    ]
    return FakeCoordinator(tmp_path / "sock", report)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("stat",), ["status"]),
        (("why", ""), ["5", "6", "7", "gpt", "vit"]),
        (("pause", "@"), ["@sweep"]),
        (("pause", "@", "sw"), ["@sweep"]),  # as bash splits it
        (("limit", "v"), ["vit"]),
        (
            ("set", "vit", "--priority", ""),
            ["guaranteed", "interactive", "normal", "opportunistic"],
        ),
        (("run", "--priority", "i"), ["interactive"]),
        (("policy", "s"), ["srtf", "srtf+pack"]),
        (("coordinator", "start", "--policy", "f"), ["fair", "fifo"]),
    ],
)
def test_bash(coordinator: FakeCoordinator, words: tuple[str, ...], offered: list[str]) -> None:
    with coordinator:
        ended = _complete(*words, socket=coordinator.path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.split() == offered


def test_another_shell(coordinator: FakeCoordinator) -> None:
    with coordinator:
        ended = _complete("pause", "@s", socket=coordinator.path, shell="fish")
    assert (ended.stdout.split(), ended.stderr) == (["@sweep"], "")


def test_jobs_of_others_are_offered_to_root_alone(coordinator: FakeCoordinator) -> None:
    with coordinator:
        ended = _complete("pause", "", socket=coordinator.path)
    others = ["5", "6", "7"] if os.getuid() == 0 else []
    assert ended.stdout.split() == [*others, "@sweep", "gpt", "vit"]


def test_without_a_coordinator_there_is_silence(tmp_path: Path) -> None:
    ended = _complete("pause", "", socket=f"{tmp_path}/none")
    assert (ended.stdout.strip(), ended.stderr, ended.returncode) == ("", "", 0)


def test_a_script_for_the_shell_is_printed() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "gpushare", "--show-completion", "bash"],
        # Whatever has started the tests need be no shell.
        env=clean_environment() | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "complete -o default -F _gpushare_completion gpushare" in ended.stdout
