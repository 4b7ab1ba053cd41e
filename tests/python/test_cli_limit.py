"""``gpushare limit`` and ``job.set_memory_limit``: by number, by name, refused, and for real."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.python.command_line import gpushare, needs_daemon, run_as_job
from tests.python.fake_coordinator import FakeCoordinator, make_job, make_report

if TYPE_CHECKING:
    from pathlib import Path


def _report(*names: str) -> dict[str, Any]:
    report = make_report()
    report["devices"][0]["jobs"] = [
        make_job(number, name, room_bytes=400 << 20) for number, name in enumerate(names, start=3)
    ]
    return report


def test_job_is_found_by_its_name(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", _report("gpt", "vit")) as fake:
        ended = gpushare("limit", "vit", "1.5GiB", socket=fake.path)
        asked = fake.requests[-1]
    assert (ended.returncode, ended.stdout) == (
        0,
        "job 4 (vit): at most 1.5 GiB, it holds 400.0 MiB now\n",
    )
    assert (asked["type"], asked["job"], asked["memory_limit_bytes"]) == ("set", 4, 3 << 29)


def test_none_takes_the_limit_away(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", _report("gpt")) as fake:
        ended = gpushare("limit", "3", "none", socket=fake.path)
        assert fake.requests[-1]["memory_limit_bytes"] == 0
    assert "no limit" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("bert", "1GiB"), 4, "no job is named bert"),
        (("@sweep", "1GiB"), 2, "@sweep: this command takes one job, and no group"),
        (("gpt", "1GiB"), 2, "jobs 3, 4 are named gpt"),
        (("3", "much"), 2, "a size like"),
    ],
)
def test_what_cannot_be_meant_is_said(
    tmp_path: Path, arguments: tuple[str, str], code: int, said: str
) -> None:
    with FakeCoordinator(tmp_path / "sock", _report("gpt", "gpt")) as fake:
        ended = gpushare("limit", *arguments, socket=fake.path)
    assert ended.returncode == code
    assert said in ended.stderr


def test_refusal_is_exit_4_in_the_coordinators_words(tmp_path: Path) -> None:
    refusal = {"v": 1, "type": "refused", "reason": "job 3 (gpt) needs 1.2 GiB"}
    with FakeCoordinator(tmp_path / "sock", _report("gpt"), refusal) as fake:
        ended = gpushare("limit", "3", "1GiB", socket=fake.path)
    assert (ended.returncode, ended.stderr) == (4, "gpushare: job 3 (gpt) needs 1.2 GiB\n")


JOB = """
import gpushare, gpushare.errors, torch
job = gpushare.register(name="small")
kept = []
with job.iteration():
    kept.append(torch.ones(16 << 18))
job.set_memory_fraction(0.125)
with job.iteration():
    try:
        kept.append(torch.ones(100 << 18))
    except torch.OutOfMemoryError as error:
        print("limit" if "memory_limit is 64.0 MiB" in str(error) else error)
with job.iteration():
    kept.append(torch.ones(16 << 18))
job.set_memory_limit("64MiB")
job.set_memory_limit(None)
with job.iteration():
    kept.append(torch.ones(100 << 18))
try:
    job.set_memory_limit("8MiB")
except gpushare.errors.GpushareError as error:
    print("refused" if "could not go on" in str(error) else error)
try:
    job.set_memory_fraction(1.5)
except ValueError as error:
    print("range" if "1.5" in str(error) else error)
job.set(memory_limit="8MiB", elastic_limits=True)
with job.iteration():
    kept.append(torch.ones(100 << 18))
try:
    job.set(elastic_limits=False)
except gpushare.errors.GpushareError as error:
    print("refused" if "with a limit of 8.0 MiB it could not" in str(error) else error)
print(sum(int(part.sum()) for part in kept) >> 18)
"""


@needs_daemon
def test_limit_moves_while_the_job_runs() -> None:
    ended = run_as_job(JOB)
    assert ended.stdout.split() == ["limit", "refused", "range", "refused", "232"], ended.stderr
