"""Half a minute of the campaign of faults, always the same one, and its own checks.

`python -m tests.faults --minutes 60` is the long run.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from benchmarks.processes import job_environment
from tests.faults import cleanliness
from tests.faults.campaign import Campaign
from tests.faults.job import Excuse, Job
from tests.faults.kinds import chosen
from tests.faults.report import figures_of, table_of
from tests.faults.training_job import OUT_OF_MEMORY

SEED = 1
SECONDS = 30.0
PER_MINUTE = 60.0
ITERATIONS = 60
KNOWN_REFUSALS = ("permission denied", "must be superuser", "needs Linux 5.6")
"""The reasons, by a part of each, for which a machine may leave out a kind of fault."""


def test_a_campaign_of_faults_harms_nobody() -> None:
    campaign = Campaign(SEED, ITERATIONS, print)
    kinds = chosen(None)
    campaign.run(kinds, SECONDS, PER_MINUTE)
    figures = figures_of(campaign, kinds)
    print(table_of(figures))
    assert figures["problems"] == []
    assert figures["left_behind"] == []
    assert figures["num_faults"] >= SECONDS / 2, "too few kinds of faults met anybody"
    assert figures["jobs"]["completed"] > 0
    assert figures["jobs"]["iterations"] >= ITERATIONS, "the lines of completed jobs are compared"
    for text in figures["left_out"]:
        assert any(refusal in text for refusal in KNOWN_REFUSALS), text


def _say(*lines: str) -> str:
    return "".join(f"print({line!r}); " for line in lines)


def _end_by(number: signal.Signals) -> str:
    return f"import os; os.kill(os.getpid(), {int(number)})"


LINES = ["0 a", "1 b"]
DONE = _say('{"done": true}')
FULL = _say('{"out_of_memory": "0 B free on its disk"}') + f"raise SystemExit({OUT_OF_MEMORY})"
UNMANAGED = _say('{"unmanaged": "no coordinator"}')


def _run(program: str, folder: Path, excuses: list[Excuse]) -> Job:
    """A job that runs this, to its end."""
    # It must not speak before it has its excuses.
    waiting = f"import os, time\nwhile not os.path.exists('{folder}/go'): time.sleep(0.01)\n"
    job = Job("job", ["-c", waiting + program], job_environment({}), LINES, folder)
    job.excuses += excuses
    (folder / "go").touch()
    end = time.monotonic() + 60
    while not job.has_ended():
        assert time.monotonic() < end
        time.sleep(0.01)
    return job


@pytest.mark.parametrize(
    ("program", "excuses", "problem"),
    [
        (_say(*LINES) + DONE, [], ""),
        (_say("0 a", "1 c") + DONE, [Excuse(may_end=True)], "instead of '1 b'"),
        (_say(*LINES, "2 c") + DONE, [], "instead of 'its end'"),
        (_say("0 a") + DONE, [], "ended with 0 after 1 lines"),
        (_say(*LINES), [], "ended with 0"),
        (_say("0 a") + "raise ValueError", [], "ended with 1"),
        (_say("0 a") + "raise ValueError", [Excuse(may_end=True)], ""),
        (_end_by(signal.SIGSEGV), [], "ended with -11"),
        (_end_by(signal.SIGSEGV), [Excuse(may_end=True)], "ended with -11"),
        (_end_by(signal.SIGBUS), [Excuse(may_end=True)], "ended with -7"),
        (_end_by(signal.SIGABRT), [Excuse(may_end=True)], "ended with -6"),
        (_end_by(signal.SIGABRT), [Excuse(ending_signal=signal.SIGABRT)], ""),
        (_end_by(signal.SIGSEGV), [Excuse(ending_signal=signal.SIGABRT)], "ended with -11"),
        ("", [Excuse(may_end=True)], "ended with 0 after 0 lines"),
        (FULL, [], "it is out of memory"),
        (FULL, [Excuse(out_of_memory_words="on its disk")], ""),
        (FULL, [Excuse(out_of_memory_words="another reason")], "it is out of memory"),
        (UNMANAGED + _say(*LINES) + DONE, [], "it went on unmanaged"),
        (UNMANAGED + _say(*LINES) + DONE, [Excuse(unmanaged_words="no coordinator")], ""),
    ],
)
def test_a_job_is_judged_by_what_it_says_and_how_it_ends(
    program: str, excuses: list[Excuse], problem: str, tmp_path: Path
) -> None:
    found = _run(program, tmp_path, excuses).problem()
    assert problem in found
    assert bool(problem) == bool(found)


def test_a_killed_job_must_have_been_right_until_then(tmp_path: Path) -> None:
    for name, line, is_wrong in (("right", "0 a", False), ("wrong", "0 x", True)):
        program = f"import time; print('{line}', flush=True); time.sleep(60)"
        job = Job(name, ["-c", program], job_environment({}), LINES, tmp_path)
        while job.num_lines == 0:
            time.sleep(0.01)
        job.kill()
        assert job.process.wait() == -signal.SIGKILL
        assert job.has_ended()
        assert bool(job.problem()) == is_wrong


def test_what_is_left_behind_is_found(tmp_path: Path) -> None:
    runtime, spill_dir = tmp_path / "run", tmp_path / "disk"
    for folder in (runtime, spill_dir):
        folder.mkdir()
    (runtime / "sock.lock").touch()
    assert cleanliness.left_behind(tmp_path, runtime, spill_dir) == []
    (runtime / "sock").touch()
    (spill_dir / "spilled").touch()
    job = Job("job", ["-c", "import time; time.sleep(60)"], job_environment({}), LINES, tmp_path)
    # The process that forked the job closes the job's file a moment later.
    found: list[str] = []
    for _ in range(200):
        found = cleanliness.left_behind(tmp_path, runtime, spill_dir)
        if len(found) <= 3:
            break
        time.sleep(0.05)
    job.kill()
    assert job.process.wait() == -signal.SIGKILL
    assert [text.split()[:2] for text in found] == [
        ["process", f"{job.pid}:"],
        ["file", f"{runtime}/sock"],
        ["file", f"{spill_dir}/spilled"],
    ]
    (runtime / "sock").unlink()
    (spill_dir / "spilled").unlink()
    assert cleanliness.left_behind(tmp_path, runtime, spill_dir) == []
