"""The coordinator starts by itself, once; it may be killed or stopped without harm to a job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT, JobProcess, gpushare_command
from tests.e2e.alone import arguments
from tests.e2e.conftest import start_all

Coordinator = Callable[..., dict[str, str]]
Alone = Callable[..., dict[str, Any]]


def status(env: dict[str, str], patience_seconds: float = 10.0) -> dict[str, Any]:
    """`gpushare status --json`; between two coordinators there is nobody to ask for a moment."""
    end = time.monotonic() + patience_seconds
    while True:
        answer = subprocess.run(
            gpushare_command("status", "--json"),
            env={**os.environ, **env, "PYTHONPATH": str(ROOT / "python")},
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode == 0:
            parsed: dict[str, Any] = json.loads(answer.stdout)
            return parsed
        assert time.monotonic() < end, answer.stderr
        time.sleep(0.02)


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


def test_killed_coordinator_costs_no_job_its_result(coordinator: Coordinator, alone: Alone) -> None:
    env = coordinator(min_quantum="0.05")
    steps = 100
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(*arguments("mlp", "adam", seed, steps), "--shared", env=env)
            )
            for seed in (1, 2)
        ]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        for _ in range(2):
            time.sleep(0.4)  # into the middle of the training; no result depends on it
            os.kill(status(env)["coordinator"]["pid"], signal.SIGKILL)
        results = [job.result() for job in jobs]
    for seed, result in zip((1, 2), results, strict=True):
        assert result["digest"] == alone("mlp", "adam", seed, steps)["digest"]
        assert result["stats"]["is_managed"]
        assert result["stats"]["reconnects"] >= 1


def test_stopped_coordinator_makes_jobs_wait_and_go_on(
    coordinator: Coordinator, alone: Alone
) -> None:
    env = coordinator(min_quantum="0.05")
    steps = 100
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(*arguments("mlp", "adam", seed, steps), "--shared", env=env)
            )
            for seed in (1, 2)
        ]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        pid = status(env)["coordinator"]["pid"]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.0)  # the state under test: a coordinator that does not answer
        os.kill(pid, signal.SIGCONT)
        results = [job.result() for job in jobs]
    for seed, result in zip((1, 2), results, strict=True):
        assert result["digest"] == alone("mlp", "adam", seed, steps)["digest"]
        assert result["stats"]["is_managed"]
        assert result["stats"]["reconnects"] == 0


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
    assert ended.returncode != 0
    assert "CoordinatorUnreachable" in ended.stderr
