"""The coordinator starts by itself, once; it may be killed or stopped without harm to a job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT
from tests.e2e.alone import arguments
from tests.e2e.asking import status
from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]
Alone = Callable[..., dict[str, Any]]


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Polls; fails the test when it takes longer."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_ten_jobs_starting_at_once_meet_at_one_coordinator(coordinator: Coordinator) -> None:
    env = coordinator()
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(JobProcess(*arguments("mlp", "sgd", seed, 1), "--shared", env=env))
            for seed in range(10)
        ]
        for job in jobs:
            job.wait_ready()
        devices = status(env)["devices"]
        assert sorted(row["pid"] for row in devices[0]["jobs"]) == sorted(job.pid for job in jobs)
        for job in jobs:
            job.go().result()


STEPS = 60


def train_two_while(
    env: dict[str, str], disturb: Callable[[], None], alone: Alone
) -> list[dict[str, Any]]:
    """Two jobs train to their ends, `disturb` in the middle of it; both are as alone."""
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(*arguments("mlp", "adam", seed, STEPS), "--shared", env=env)
            )
            for seed in (1, 2)
        ]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        disturb()
        results = [job.result() for job in jobs]
    for seed, result in zip((1, 2), results, strict=True):
        assert result["digest"] == alone("mlp", "adam", seed, STEPS)["digest"]
        assert result["stats"]["is_managed"]
    return results


def test_killed_coordinator_costs_no_job_its_result(coordinator: Coordinator, alone: Alone) -> None:
    env = coordinator(min_quantum="0.05s")

    def kill_twice() -> None:
        for _ in range(2):
            time.sleep(0.4)  # into the middle of the training; no result depends on it
            os.kill(status(env)["coordinator"]["pid"], signal.SIGKILL)

    results = train_two_while(env, kill_twice, alone)
    assert all(result["stats"]["reconnects"] >= 1 for result in results)


def test_stopped_coordinator_makes_jobs_wait_and_go_on(
    coordinator: Coordinator, alone: Alone
) -> None:
    env = coordinator(min_quantum="0.05s")

    with ExitStack() as stack:
        newcomers = []

        def stop_for_a_while() -> None:
            pid = status(env)["coordinator"]["pid"]
            os.kill(pid, signal.SIGSTOP)
            flags = arguments("mlp", "adam", 3, 2)
            newcomer = stack.enter_context(JobProcess(*flags, "--shared", env=env))
            newcomers.append(newcomer)
            # The time for finding a coordinator has passed, and it waits all the same.
            wait_for(lambda: "the coordinator does not answer" in newcomer.errors())
            os.kill(pid, signal.SIGCONT)

        results = train_two_while(env, stop_for_a_while, alone)
        results += start_all(newcomers)
    assert all(result["stats"]["reconnects"] == 0 for result in results)
    assert all(result["stats"]["is_managed"] for result in results)


def test_without_a_coordinator_a_job_trains_on_unmanaged(tmp_path: Path, alone: Alone) -> None:
    env = {"GPUSHARE_SOCKET": str(tmp_path / "absent" / "folder" / "sock")}
    (tmp_path / "absent").write_text("a file where the socket's folder should be\n")
    with JobProcess(*arguments("mlp", "sgd", 1, 3), "--shared", env=env) as job:
        result = start_all([job])[0]
        assert "unmanaged" in job.errors()
    assert result["digest"] == alone("mlp", "sgd", 1, 3)["digest"]
    assert not result["stats"]["is_managed"]


def test_required_coordinator_that_cannot_be_had_ends_the_job(tmp_path: Path) -> None:
    (tmp_path / "absent").write_text("")
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "GPUSHARE_SOCKET": str(tmp_path / "absent" / "sock"),
        "GPUSHARE_REQUIRE": "1",
    }
    script = "import gpushare, torch; gpushare.register(torch.nn.Linear(1, 1))"
    ended = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 3
    assert "Traceback" not in ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("gpushare: ")
    assert str(tmp_path / "absent" / "sock") in line
    assert line.endswith("GPUSHARE_REQUIRE=1 makes this fatal")
