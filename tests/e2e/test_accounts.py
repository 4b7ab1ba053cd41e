"""Accounts of real jobs: their figures are the coordinator's and the job's own, whoever stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.processes import ROOT, job_environment, stop_coordinator
from tests.e2e.alone import arguments
from tests.e2e.asking import status
from tests.e2e.test_coordinator_lives_and_dies import wait_for
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]
STEPS = 30


@pytest.fixture
def env(coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Of jobs whose coordinator keeps accounts where this process looks for them."""
    env = coordinator(capacity="256MiB", min_quantum="20ms")
    monkeypatch.setenv("XDG_STATE_HOME", env["XDG_STATE_HOME"])
    return env


def shown(command: str, *words: str) -> list[dict[str, Any]]:
    """What a command about accounts prints as JSON."""
    ended = subprocess.run(
        [sys.executable, "-m", "gpushare", command, *words, "--format", "json"],
        env=job_environment({"GPUSHARE_CONFIG": os.devnull}),
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert ended.stderr == "" or "no such job" in ended.stderr
    return json.loads(ended.stdout)


def start_two(env: dict[str, str], stack: ExitStack) -> list[JobProcess]:
    jobs = [
        stack.enter_context(
            JobProcess(*arguments("mlp", "adam", seed, STEPS), "--shared", "--linger", env=env)
        )
        for seed in (1, 2)
    ]
    for job in jobs:
        job.wait_ready()
    for job in jobs:
        job.go()
    return jobs


def end(job: JobProcess) -> None:
    """Lets a job end that lingers."""
    job.process.stdin.close()
    job.process.wait(60)


def rows_of(env: dict[str, str]) -> dict[int, dict[str, Any]]:
    return {row["pid"]: row for row in status(env)["devices"][0]["jobs"]}


def test_accounts_are_the_coordinators_own_sums(env: dict[str, str]) -> None:
    with ExitStack() as stack:
        jobs = start_two(env, stack)
        for job in jobs:
            job.outcome()
        last = rows_of(env)
        for job in jobs:
            end(job)
    wait_for(lambda: len(shown("history", "-n", "5")) == 2)
    kept = {row["pid"]: row for row in shown("history")}
    assert kept.keys() == last.keys()
    for pid, row in kept.items():
        assert (row["how"], row["exit_code"]) in {("ended", 0), ("ended", None)}
        assert row["iterations"] == last[pid]["iterations"] >= STEPS
        assert row["leases"] == last[pid]["leases"]
        assert row["waited_seconds"] == pytest.approx(last[pid]["waited_seconds"])
        # A lease that nobody wants back is open until the process is gone.
        served = last[pid]["served_seconds"] - 1e-6  # it was rounded
        assert served <= row["held_seconds"] <= row["wall_seconds"]
    (usage,) = shown("usage", "--by", "user")
    for name in ("held_seconds", "waited_seconds", "iterations", "leases", "wall_seconds"):
        assert usage[name] == pytest.approx(sum(row[name] for row in kept.values())), name


def test_a_job_that_outlives_its_coordinator_is_one_job(env: dict[str, str]) -> None:
    with ExitStack() as stack:
        jobs = start_two(env, stack)
        wait_for(lambda: all(row["leases"] for row in rows_of(env).values()))
        stop_coordinator(env)
        leases_before = {row["pid"]: row["leases"] for row in shown("history")}
        assert {row["how"] for row in shown("history")} == {"carried on"}
        for job in jobs:
            job.outcome()
        last = rows_of(env)
        os.kill(jobs[0].pid, signal.SIGKILL)
        end(jobs[1])
    wait_for(lambda: "carried on" not in {row["how"] for row in shown("history")})
    kept = {row["pid"]: row for row in shown("history")}
    assert {pid: row["leases"] for pid, row in kept.items()} == {
        pid: leases_before[pid] + row["leases"] for pid, row in last.items()
    }
    assert kept[jobs[0].pid]["signal"] in {"SIGKILL", None}
    # Both had said that their iterations were over; the second one was not killed.
    assert {row["how"] for row in kept.values()} == {"ended"}
    assert kept[jobs[1].pid]["signal"] is None
