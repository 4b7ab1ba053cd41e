"""SIGKILL at random moments: nobody but the killed process is harmed.

GPUSHARE_TEST_KILLS sets the number of kills (60 in the full run); without it the test is skipped.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import JobProcess
from tests.e2e.alone import arguments, peak_alone
from tests.e2e.test_coordinator_lives_and_dies import status

KILLS = int(os.environ.get("GPUSHARE_TEST_KILLS", "0"))
POOL = 6
STEPS = 200
KINDS = ("holder", "waiter", "spilled", "coordinator")
IDLE_SECONDS = 5.0

Coordinator = Callable[..., dict[str, str]]
Alone = Callable[..., dict[str, Any]]


class Pool:
    """Six jobs; whoever ends or is killed is replaced, so that the device is always wanted."""

    def __init__(self, stack: ExitStack, env: dict[str, str]) -> None:
        """`stack` ends the processes."""
        self._stack = stack
        self._env = env
        self._seed = 0
        self.running: dict[int, tuple[int, JobProcess]] = {}
        self.finished: dict[int, dict[str, Any]] = {}

    def fill(self) -> None:
        """Starts jobs until there are POOL."""
        while len(self.running) < POOL:
            self._seed = self._seed % 8 + 1  # few seeds: each has one reference run
            flags = [*arguments("mlp", "adam", self._seed, STEPS), "--shared"]
            job = self._stack.enter_context(JobProcess(*flags, env=self._env))
            self.running[job.pid] = (self._seed, job)
            job.wait_ready().go()

    def collect(self) -> list[tuple[int, dict[str, Any]]]:
        """Results of the jobs that have ended: (seed, result)."""
        done = []
        for pid, (seed, job) in list(self.running.items()):
            if job.process.poll() is not None:
                done.append((seed, job.result()))
                del self.running[pid]
        return done

    def kill(self, pid: int) -> None:
        """SIGKILL, and no longer counted."""
        _, job = self.running.pop(pid)
        os.kill(pid, signal.SIGKILL)
        job.process.wait()


def _victim(report: dict[str, Any], kind: str, pids: set[int]) -> int | None:
    """A pid of this kind, as the coordinator sees it now."""
    if kind == "coordinator":
        return int(report["coordinator"]["pid"])
    rows = [row for row in report["devices"][0]["jobs"] if row["pid"] in pids]
    matching = {
        "holder": [row for row in rows if row["state"] == "running"],
        "waiter": [row for row in rows if row["state"] == "waiting"],
        "spilled": [row for row in rows if row["spilled_bytes"] > 0],
    }[kind]
    return random.choice(matching)["pid"] if matching else None


def _total_iterations(report: dict[str, Any]) -> int:
    return sum(row["iterations"] for row in report["devices"][0]["jobs"])


@pytest.mark.skipif(KILLS == 0, reason="GPUSHARE_TEST_KILLS is not set")
def test_kills_at_random_moments_harm_nobody_else(coordinator: Coordinator, alone: Alone) -> None:
    random.seed(20261121)
    env = coordinator(
        capacity=str(int(2.2 * peak_alone("mlp", "adam"))), min_quantum="0.05", policy="rr"
    )
    folder = Path(env["GPUSHARE_SOCKET"]).parent
    killed = dict.fromkeys(KINDS, 0)
    results: list[tuple[int, dict[str, Any]]] = []
    with ExitStack() as stack:
        pool = Pool(stack, env)
        pool.fill()
        while sum(killed.values()) < KILLS:
            results.extend(pool.collect())
            pool.fill()
            kind = min(KINDS, key=lambda name: killed[name])
            time.sleep(random.uniform(0.05, 0.4))  # the random moment
            before = status(env)
            pid = _victim(before, kind, set(pool.running))
            if pid is None:
                continue
            if kind == "coordinator":
                os.kill(pid, signal.SIGKILL)
            else:
                pool.kill(pid)
            killed[kind] += 1
            _wait_for_progress(env, pool, results)
            pool.fill()
        for seed, job in list(pool.running.values()):
            results.append((seed, job.result()))
    assert len(results) >= POOL
    for seed, result in results:
        assert result["digest"] == alone("mlp", "adam", seed, STEPS)["digest"]
        assert result["stats"]["is_managed"]
    left = {path.name for path in folder.iterdir()}
    assert left <= {"sock", "sock.lock", "sock.jobs", "coordinator.log"}


def _wait_for_progress(
    env: dict[str, str], pool: Pool, results: list[tuple[int, dict[str, Any]]]
) -> None:
    """Somebody iterates within IDLE_SECONDS, or ends, which is progress too."""
    end = time.monotonic() + IDLE_SECONDS
    first = None
    while time.monotonic() < end:
        ended = pool.collect()
        results.extend(ended)
        if ended:
            return
        try:
            now = _total_iterations(status(env))
        except Exception:  # between two coordinators there is nobody to ask
            time.sleep(0.02)
            continue
        if first is not None and now > first:
            return
        first = now if first is None else min(first, now)
        time.sleep(0.02)
    raise AssertionError(f"no job went on within {IDLE_SECONDS} s after a kill")
