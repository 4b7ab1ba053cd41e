"""``gpushare why``: what is asked, what is said, and for real."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpushare.cli._screen.line import plain
from gpushare.cli.why import why_lines
from tests.python.command_line import gpushare, needs_daemon, run_as_job
from tests.python.fake_coordinator import FakeCoordinator, make_report

if TYPE_CHECKING:
    from pathlib import Path

ANSWER: dict[str, Any] = {
    "job": 5,
    "name": "vit\x1b",
    "state": "waiting",
    "explain": "waits for 3 (gpt)'s boundary, asked for it 0.1 s ago, at most 0.9 s",
    "reason": "set: weight 1 -> 2 by user 0",
    "now": ["3 (gpt) has had the lane for 4.1 s (first of 2 in line, by fair)"],
    "order": ["fair: served over weight, 3 (gpt) counts 9.500 s (weight 1), 5 (vit) 12.000 s"],
    "changes": [],
}


def test_it_is_asked_by_number_and_said_in_parts(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report(why=ANSWER)) as fake:
        ended = gpushare("why", "vit", socket=fake.path)
        asked = fake.requests[-1]
    assert asked == {"v": 1, "type": "status_request", "why": 5}
    assert ended.stdout.splitlines() == [
        "job 5 (vit?) is waiting: waits for 3 (gpt)'s boundary, asked for it 0.1 s ago, "
        "at most 0.9 s",
        "now:",
        "  3 (gpt) has had the lane for 4.1 s (first of 2 in line, by fair)",
        "in line, as if the lease ended now:",
        "  fair: served over weight, 3 (gpt) counts 9.500 s (weight 1), 5 (vit) 12.000 s",
        "last decision about it: set: weight 1 -> 2 by user root",
    ], ended.stderr


def test_as_json_it_is_the_coordinators_answer(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report(why=ANSWER)) as fake:
        ended = gpushare("why", "5", "--json", socket=fake.path)
    assert json.loads(ended.stdout) == {"schema_version": 1, **ANSWER}


def test_no_such_job_is_exit_4_in_the_coordinators_words(tmp_path: Path) -> None:
    refusal = {"v": 1, "type": "refused", "reason": "there is no job 9. See: gpushare status"}
    with FakeCoordinator(tmp_path / "sock", make_report(), refusal) as fake:
        ended = gpushare("why", "9", socket=fake.path)
    assert ended.returncode == 4
    assert ended.stderr == "gpushare: there is no job 9. See: gpushare status\n"


@pytest.mark.parametrize(
    ("job", "shown"),
    [
        ("bert", "bert"),
        # Python takes it for a 3, and another user may have named a job so.
        ("\u0663", "\u0663"),
        ("9" * 5000, "9" * 5000),
        ("\x1b[2Jx\n[error]", "?[2Jx?[error]"),
    ],
    ids=["a word", "a digit of another alphabet", "too many digits", "escape sequences"],
)
def test_no_such_name_is_exit_4_as_no_such_number(job: str, shown: str, tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        ended = gpushare("why", job, socket=fake.path)
    assert (ended.returncode, ended.stderr) == (
        4,
        f"gpushare: no job is named {shown}. See: gpushare status\n",
    )


def test_a_job_that_starts_may_have_the_name_later(tmp_path: Path) -> None:
    report = make_report()
    report["devices"][0]["jobs"][0] |= {"name": "", "state": "starting"}
    with FakeCoordinator(tmp_path / "sock", report) as fake:
        ended = gpushare("why", "mine", socket=fake.path)
    assert "named mine; 1 job still starts and has no name yet. See" in ended.stderr


def test_a_state_is_said_once() -> None:
    answer = {
        "job": 5, "name": "gpt", "state": "paused", "explain": "is paused by user root",
        "reason": "ask: paused by user root", "now": [], "order": [], "changes": [],
    }  # fmt: skip
    first = plain(why_lines(answer, None)).splitlines()[0]
    assert first == "job 5 (gpt) is paused by user root"


def test_a_group_is_no_job(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        ended = gpushare("why", "@sweep", socket=fake.path)
    assert ended.returncode == 2
    said = "takes one job, and no group; its jobs are listed by gpushare ps --group sweep. "
    assert said in ended.stderr


def test_an_older_coordinator_is_named_as_such(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        ended = gpushare("why", "5", socket=fake.path)
    assert ended.returncode == 1
    assert ended.stderr.startswith("gpushare: the coordinator of job 5 is of an earlier version")


def test_without_a_coordinator_is_exit_3(tmp_path: Path) -> None:
    ended = gpushare("why", "5", socket=f"{tmp_path}/none")
    assert ended.returncode == 3
    assert ended.stderr.startswith("gpushare: no coordinator answers. Tried: ")


JOB = """
import gpushare, subprocess, sys
job = gpushare.register(name="small")
def ask(name):
    ended = subprocess.run(
        [sys.executable, "-m", "gpushare", "why", name],
        capture_output=True, text=True, check=False)
    print(ended.stdout or ended.stderr, end="")
ask("small")
with job.iteration():
    ask("small")
ask("9")
"""


@needs_daemon
def test_a_running_job_is_explained() -> None:
    ended = run_as_job(JOB)
    lines = ended.stdout.splitlines()
    assert lines[0] == "job 1 (small) is idle: does not wait", ended.stderr
    running = next(line for line in lines if " is running: " in line)
    assert running.startswith("job 1 (small) is running: has had the lease for ")
    holder = next(line for line in lines if line.startswith("  1 (small) has had the lane for "))
    assert "alone in line, by fair" in holder
    assert holder.endswith("; nobody waits for it, so it goes on")
    assert lines[-1] == "gpushare: there is no job 9. See: gpushare status"
