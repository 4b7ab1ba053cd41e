"""Jobs that are paused, resumed and changed, and a policy that is another, while they run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from gpushare._coordinator.client import CoordinatorClient
from tests.e2e.alone import arguments, peak_alone
from tests.e2e.asking import PATIENCE_SECONDS, row_of, status, wait_until
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]
Alone = Callable[..., dict[str, Any]]


def _set(env: dict[str, str], job: JobProcess, **changes: Any) -> None:
    CoordinatorClient([env["GPUSHARE_SOCKET"]]).set_job(row_of(env, job)["job"], changes)


def _coordinator_of_few_bytes(coordinator: Coordinator) -> dict[str, str]:
    """One job's memory leaves the device for the other's; none of it is shared."""
    capacity = int(1.2 * peak_alone("mlp", "adam"))
    return coordinator(
        capacity=str(capacity), min_quantum="0", policy="rr", switch_loss="0.5", lanes="off"
    )


def test_one_is_paused_and_the_other_runs_on(coordinator: Coordinator, alone: Alone) -> None:
    env = _coordinator_of_few_bytes(coordinator)
    with ExitStack() as stack:
        long, short = (
            stack.enter_context(
                JobProcess(
                    *arguments("mlp", "adam", seed, steps), "--shared", "--progress", env=env
                )
            )
            for seed, steps in ((1, 80), (2, 40))
        )
        for job in (long, short):
            job.wait_ready().go()
        long.say()
        short.say()
        _set(env, long, is_paused=True)
        wait_until(lambda: row_of(env, long)["state"] == "paused")
        before = row_of(env, long)
        other = short.result()
        after = row_of(env, long)
        assert (after["state"], after["leases"]) == ("paused", before["leases"])
        assert after["iterations"] == before["iterations"] < 80
        # Its memory made room for the other, as that of any job that waits.
        assert after["spilled_bytes"] > 0
        assert f"gpushare resume {after['job']}" in after["explain"]
        _set(env, long, is_paused=False)
        result = long.result()
    assert result["digest"] == alone("mlp", "adam", 1, 80)["digest"]
    assert other["digest"] == alone("mlp", "adam", 2, 40)["digest"]


def test_a_pause_outlives_the_coordinator(coordinator: Coordinator, alone: Alone) -> None:
    env = coordinator(policy="rr")
    with JobProcess(*arguments("mlp", "sgd", 3, 100), "--shared", "--progress", env=env) as job:
        job.wait_ready().go()
        job.say()
        _set(env, job, is_paused=True, weight=3, priority="interactive")
        wait_until(lambda: row_of(env, job)["state"] == "paused")
        before = status(env)["coordinator"]
        os.kill(before["pid"], signal.SIGKILL)
        wait_until(lambda: status(env)["coordinator"]["pid"] != before["pid"])
        wait_until(lambda: any(row["is_parked"] for row in status(env)["devices"][0]["jobs"]))
        row = row_of(env, job)
        assert (row["state"], row["leases"]) == ("paused", 0)
        assert (row["weight"], row["priority"]) == (3, "interactive")
        _set(env, job, is_paused=False)
        result = job.result()
    assert result["digest"] == alone("mlp", "sgd", 3, 100)["digest"]


def test_shares_follow_weights_that_are_changed(coordinator: Coordinator) -> None:
    env = coordinator(capacity="256MiB", min_quantum="0.02s", policy="fair", switch_loss="0.5")
    flags = ("--rows", "1024", "--until-told", "--shared")
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(JobProcess(*flags, module="benchmarks.lane_job", env=env))
            for _ in range(2)
        ]
        for job in jobs:
            job.wait_ready().go()

        def served_while(heavy: JobProcess, light: JobProcess) -> tuple[float, float]:
            _set(env, heavy, weight=8)
            _set(env, light, weight=1)
            before = row_of(env, heavy), row_of(env, light)
            wait_until(lambda: row_of(env, light)["leases"] >= before[1]["leases"] + 8)
            after = row_of(env, heavy), row_of(env, light)
            served = [
                b["served_seconds"] - a["served_seconds"]
                for a, b in zip(before, after, strict=True)
            ]
            return served[0], served[1]

        # The second time the one that was served more has that behind it.
        for heavy, light in (jobs, jobs[::-1]):
            most, least = served_while(heavy, light)
            assert most > 2 * least
        for job in jobs:
            job.go()
            job.result()


def test_jobs_compute_the_same_while_the_policy_is_changed(
    coordinator: Coordinator, alone: Alone
) -> None:
    env = _coordinator_of_few_bytes(coordinator)
    client = CoordinatorClient([env["GPUSHARE_SOCKET"]])
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(*arguments("mlp", "adam", seed, 40), "--shared", "--progress", env=env)
            )
            for seed in (1, 2)
        ]
        for job in jobs:
            job.wait_ready().go()
        for policy in ("fair", "fifo", "srtf", "rr"):
            jobs[1].say()
            assert client.set_policy(policy)["devices"][0]["policy"] == policy
        results = [job.result() for job in jobs]
    for seed, result in zip((1, 2), results, strict=True):
        assert result["digest"] == alone("mlp", "adam", seed, 40)["digest"]


WAITER = """
import gpushare, torch
job = gpushare.register(name="waiter")
with job.iteration():
    kept = torch.ones(1 << 20)
job.pause()
print("{}", flush=True)
with job.iteration():
    print("in", flush=True)
"""


HANDLER = """
import json, os, signal
import gpushare
def say(**what):
    print(json.dumps(what), flush=True)
read_end, write_end = os.pipe()
os.set_blocking(write_end, False)
signal.set_wakeup_fd(write_end)
signal.signal(signal.SIGUSR1, lambda number, frame: say(handled=number))
job = gpushare.register(name="waiter")
with job.iteration():
    pass
job.pause()
say(ready=True)
try:
    with job.iteration():
        pass
except KeyboardInterrupt:
    told = list(os.read(read_end, 10))
    say(told=told, is_restored=signal.set_wakeup_fd(-1) == write_end)
"""


def test_handlers_run_in_the_gate_and_the_programs_own_descriptor_is_told(
    coordinator: Coordinator,
) -> None:
    env = coordinator()
    with JobProcess(command=[sys.executable, "-c", HANDLER], env=env) as job:
        job.say()
        wait_until(lambda: "is paused by user" in job.errors())
        job.process.send_signal(signal.SIGUSR1)
        assert job.say() == {"handled": signal.SIGUSR1}
        job.process.send_signal(signal.SIGINT)
        assert job.say() == {"told": [signal.SIGUSR1, signal.SIGINT], "is_restored": True}


def test_a_paused_job_says_so_and_ends_with_ctrl_c(coordinator: Coordinator) -> None:
    env = coordinator()
    with JobProcess(command=[sys.executable, "-c", WAITER], env=env) as job:
        job.say()
        wait_until(lambda: "is paused by user" in job.errors())
        assert "waiting for 5 s: is paused by user" in job.errors()
        job.process.send_signal(signal.SIGINT)
        assert job.process.wait(PATIENCE_SECONDS) == -signal.SIGINT
        assert "KeyboardInterrupt" in job.errors()
