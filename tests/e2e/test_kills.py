"""SIGKILL at random moments: nobody but the killed process is harmed.

GPUSHARE_TEST_KILLS sets the number of kills; 60 is the full run.
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

from tests.e2e.alone import arguments, peak_alone
from tests.e2e.asking import status
from tests.support.job_process import JobProcess

KILLS = int(os.environ.get("GPUSHARE_TEST_KILLS", "4"))
POOL = 6
STEPS = 40
NUM_SEEDS = 4
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
        self._num_started = 0
        self._running: dict[int, tuple[int, JobProcess]] = {}
        self.results: list[tuple[int, dict[str, Any]]] = []
        """(seed, result) of those that have ended by themselves."""

    def fill(self) -> None:
        """Collects the results of those that have ended, and starts jobs until there are POOL."""
        for pid, (seed, job) in list(self._running.items()):
            if job.has_said():
                self.results.append((seed, job.result()))
                del self._running[pid]
        fresh = []
        while len(self._running) < POOL:
            self._num_started += 1
            seed = self._num_started % NUM_SEEDS  # few: each has one reference run
            flags = [*arguments("mlp", "adam", seed, STEPS), "--shared"]
            job = self._stack.enter_context(JobProcess(*flags, env=self._env))
            self._running[job.pid] = (seed, job)
            fresh.append(job)
        for job in fresh:
            job.wait_ready().go()

    def drain(self) -> None:
        """Waits for the results of all that run."""
        for seed, job in self._running.values():
            self.results.append((seed, job.result()))
        self._running.clear()

    def kill(self, report: dict[str, Any], kind: str) -> bool:
        """SIGKILL to one of this kind, as the report says; false: there is none."""
        if kind == "coordinator":
            os.kill(report["coordinator"]["pid"], signal.SIGKILL)
            return True
        rows = [row for row in report["devices"][0]["jobs"] if row["pid"] in self._running]
        matching = {
            "holder": [row for row in rows if row["state"] == "running"],
            "waiter": [row for row in rows if row["state"] == "waiting"],
            "spilled": [row for row in rows if row["spilled_bytes"] > 0],
        }[kind]
        if not matching:
            return False
        _, job = self._running.pop(random.choice(matching)["pid"])
        os.kill(job.pid, signal.SIGKILL)
        job.process.wait()
        return True


def _iterations(report: dict[str, Any]) -> dict[int, int]:
    return {row["pid"]: row["iterations"] for row in report["devices"][0]["jobs"]}


def _wait_for_progress(env: dict[str, str], pool: Pool) -> None:
    """Somebody iterates, or ends, within IDLE_SECONDS."""
    end = time.monotonic() + IDLE_SECONDS
    num_results = len(pool.results)
    before = _iterations(status(env))
    while True:
        pool.fill()
        now = _iterations(status(env))
        if len(pool.results) > num_results or any(now[p] > before.get(p, 0) for p in now):
            return
        assert time.monotonic() < end, f"nobody went on within {IDLE_SECONDS} s after a kill"
        time.sleep(0.02)


def _processes_with(text: str) -> list[int]:
    """Other processes with this text in their environment or command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            seen = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if text.encode() in seen and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def _num_descriptors(pid: int) -> int:
    """The least of several looks: the last question has a connection for a moment."""
    looks = []
    for _ in range(20):
        looks.append(len(list(Path(f"/proc/{pid}/fd").iterdir())))
        time.sleep(0.01)
    return min(looks)


def _coordinator_without_jobs(env: dict[str, str]) -> int:
    """Its pid, once it has seen that all jobs have ended."""
    end = time.monotonic() + IDLE_SECONDS
    while (report := status(env))["devices"][0]["jobs"]:
        assert time.monotonic() < end, f"jobs that have ended are still listed: {report}"
        time.sleep(0.02)
    return int(report["coordinator"]["pid"])


def _descriptors_after_one_job(env: dict[str, str]) -> int:
    """Starts the coordinator."""
    with JobProcess(*arguments("mlp", "adam", 0, 1), "--shared", env=env) as job:
        job.wait_ready().go().result()
    return _num_descriptors(_coordinator_without_jobs(env))


def test_kills_at_random_moments_harm_nobody_else(
    coordinator: Coordinator, alone: Alone, tmp_path: Path
) -> None:
    random.seed(20261121)
    spill_dir = tmp_path / "spilled"
    spill_dir.mkdir()
    env = coordinator(
        capacity=str(int(2.2 * peak_alone("mlp", "adam"))),
        min_quantum="0.05s",
        policy="rr",
        spill_dir=str(spill_dir),
        linger="600s",
    )
    folder = Path(env["GPUSHARE_SOCKET"]).parent
    killed = dict.fromkeys(KINDS, 0)
    undisturbed = _descriptors_after_one_job(env)
    with ExitStack() as stack:
        pool = Pool(stack, env)
        while sum(killed.values()) < KILLS:
            pool.fill()
            kind = min(KINDS, key=lambda name: killed[name])
            time.sleep(random.uniform(0.05, 0.4))  # the random moment
            if pool.kill(status(env), kind):
                killed[kind] += 1
                _wait_for_progress(env, pool)
        pool.drain()
        assert len(pool.results) >= POOL
        for seed, result in pool.results:
            assert result["digest"] == alone("mlp", "adam", seed, STEPS)["digest"]
            assert result["stats"]["is_managed"]
        last = _coordinator_without_jobs(env)
        assert _processes_with(str(folder)) == [last]
        assert _num_descriptors(last) == undisturbed
    assert list(spill_dir.iterdir()) == []
    assert {path.name for path in folder.iterdir()} <= {
        "sock",
        "sock.lock",
        "sock.jobs",
        "sock.profiles",
        "coordinator.log",
    }
