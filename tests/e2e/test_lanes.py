"""Jobs of a lane share the memory that is free at their boundaries, and train as alone."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.kernel_books import KernelBooks
from benchmarks.processes import read_status
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]
MIB = 1 << 20
ROWS = 16384  # 4 MiB an activation
SETTINGS = {
    "policy": "rr",
    "min_quantum": "0",
    "max_wait": "0.1s",
    "switch_loss": "0.5",
}


def _job(stack: ExitStack, env: dict[str, str], seed: int, *more: str) -> JobProcess:
    arguments = ["--rows", str(ROWS), "--seed", str(seed), *more]
    return stack.enter_context(JobProcess(*arguments, env=env, module="benchmarks.lane_job"))


def _losses_alone(seed: int, count: int) -> list[str]:
    with ExitStack() as stack:
        job = _job(stack, {}, seed, "--iterations", str(count))
        losses: list[str] = job.wait_ready().go().result()["losses"]
        return losses


def _device(env: dict[str, str]) -> dict[str, Any]:
    """The device as the coordinator has it; empty while there is no coordinator."""
    report = read_status(env)
    if not report:
        return {}
    device: dict[str, Any] = report["devices"][0]
    return device | {"pid": report["coordinator"]["pid"]}


def _start(stack: ExitStack, env: dict[str, str], count: int, *more: str) -> list[JobProcess]:
    """Jobs that train until they are told to end."""
    jobs = [
        _job(stack, env, seed, "--shared", "--until-told", "--linger", *more)
        for seed in range(count)
    ]
    for job in jobs:
        job.wait_ready()
    for job in jobs:
        job.go()
    return jobs


def _wait_shared(env: dict[str, str], jobs: list[JobProcess], not_pid: int = 0) -> dict[str, Any]:
    """Until all share, at another coordinator than `not_pid`."""
    while True:
        assert not any(job.has_said() for job in jobs)
        device = _device(env)
        rows = device.get("jobs", [])
        is_there = device.get("pid", not_pid) != not_pid and len(rows) == len(jobs)
        if is_there and all(row["lane_bytes"] > 16 * MIB for row in rows):
            return device
        time.sleep(0.1)


def _end(jobs: list[JobProcess]) -> list[dict[str, Any]]:
    for job in jobs:
        job.go()
    return [job.outcome() for job in jobs]


def _check(results: list[dict[str, Any]], seeds: list[int]) -> None:
    for seed, result in zip(seeds, results, strict=True):
        assert result["losses"] == _losses_alone(seed, len(result["losses"]))


@pytest.mark.parametrize("count", [2, 4])
def test_the_memory_of_activations_is_needed_once(count: int, coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    with ExitStack() as stack:
        jobs = _start(stack, env, count)
        _wait_shared(env, jobs)
        books = KernelBooks(jobs, every_seconds=0.1)
        books.start()
        time.sleep(1.5)
        sums = books.stop()
        results = _end(jobs)
    _check(results, list(range(count)))
    stats = [result["stats"] for result in results]
    # Peaks are those of the iterations before any memory was shared.
    ephemeral = max(one["peak_backed_bytes"] - one["live_bytes"] for one in stats)
    bound = sum(one["live_bytes"] for one in stats) + ephemeral
    assert sums
    # Live memory is a few tensors in a chunk or two of each job. A look reads one process after the
    # other: what changes hands meanwhile it sees twice.
    assert statistics.median(sums) <= bound + count * 4 * MIB
    assert all(one["spilled_total_bytes"] == 0 for one in stats)


def test_pool_is_in_status_and_goes_with_its_jobs(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    with ExitStack() as stack:
        jobs = _start(stack, env, 2)
        device = _wait_shared(env, jobs)
        pool = device["lanes"][0]["pool_bytes"]
        assert pool > 16 * MIB
        rooms = sum(job["room_bytes"] for job in device["jobs"])
        assert rooms + pool + device["free_bytes"] == device["capacity_bytes"]
        _end(jobs)
        assert _device(env)["lanes"][0]["pool_bytes"] == 0


def test_no_memory_is_shared_where_lanes_are_off(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS, lanes="off")
    with ExitStack() as stack:
        jobs = _start(stack, env, 2)
        while min((row["leases"] for row in _device(env).get("jobs", [])), default=0) < 8:
            assert not any(job.has_said() for job in jobs)
        assert [result["stats"]["lane_bytes"] for result in _end(jobs)] == [0, 0]


def test_kept_and_forked_activations_stay_what_they_are(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    with ExitStack() as stack:
        jobs = _start(stack, env, 2, "--fork-every", "7", "--keep-at", "20")
        _wait_shared(env, jobs)
        iterations = [row["iterations"] for row in _device(env)["jobs"]]
        while True:  # at least one of each since
            rows = _device(env)["jobs"]
            new = [row["iterations"] - old for row, old in zip(rows, iterations, strict=True)]
            if min(new) > 10 and min(row["iterations"] for row in rows) > 21:
                break
            assert not any(job.has_said() for job in jobs)
        results = _end(jobs)
    _check(results, [0, 1])


def test_a_killed_member_harms_nobody(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    with ExitStack() as stack:
        jobs = _start(stack, env, 3)
        _wait_shared(env, jobs)
        jobs[1].process.kill()
        rest = [jobs[0], jobs[2]]
        _wait_shared(env, rest)
        leases = max(row["leases"] for row in _device(env)["jobs"])
        while min(row["leases"] for row in _device(env)["jobs"]) < leases + 4:
            assert not any(job.has_said() for job in rest)
        _check(_end(rest), [0, 2])


def test_members_go_on_with_the_next_coordinator(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    with ExitStack() as stack:
        jobs = _start(stack, env, 2)
        pid = _wait_shared(env, jobs)["pid"]
        os.kill(pid, signal.SIGKILL)
        _wait_shared(env, jobs, not_pid=pid)
        results = _end(jobs)
    _check(results, [0, 1])
    assert [result["stats"]["reconnects"] for result in results] == [1, 1]


@pytest.mark.parametrize("is_strict", [False, True])
def test_a_stray_access_between_leases_is_a_fault_where_asked_for(
    is_strict: bool, coordinator: Coordinator
) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS) | {"GPUSHARE_LANE_STRICT": str(int(is_strict))}
    with ExitStack() as stack:
        _job(stack, env, 0, "--shared").wait_ready()  # without another there is no lane
        stray = stack.enter_context(JobProcess(env=env, module="tests.e2e.stray_job"))
        stray.wait_ready().go()
        if is_strict:
            with pytest.raises(RuntimeError, match=f"job ended with {-signal.SIGSEGV}"):
                stray.outcome()
        else:
            assert stray.outcome()["read"] == "0000803f"  # 1.0: nobody else was there


def test_jobs_say_what_they_need_once_it_is_known(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    with ExitStack() as stack:
        jobs = _start(stack, env, 2)
        device = _wait_shared(env, jobs)
        for row in device["jobs"]:
            # Activations that are free at boundaries; parameters of a few hundred KiB.
            assert row["persistent_bytes"] < 4 * MIB
            assert row["ephemeral_bytes"] >= row["lane_bytes"] > 16 * MIB
        admission = device["admission"]
        assert admission["fit"] == "all"
        assert admission["jobs_unknown"] == 0
        assert admission["ephemeral_bytes"] == sum(row["ephemeral_bytes"] for row in device["jobs"])
        # What is known is there before a lease: nobody asks for more inside an iteration.
        leases = max(row["leases"] for row in device["jobs"])
        began = time.monotonic()
        while min(row["leases"] for row in _device(env)["jobs"]) < leases + 6:
            assert not any(job.has_said() for job in jobs)
        since = time.monotonic() - began
        recent = [each for each in read_status(env)["decisions"] if each["seconds_ago"] < since]
        assert recent
        assert [each for each in recent if each["what"] in ("room", "revoke", "deny")] == []
        _end(jobs)
