"""Jobs of a lane share the memory that is free at their boundaries, and train as alone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.kernel_books import KernelBooks
from benchmarks.processes import JobProcess, gpushare_command, job_environment

Coordinator = Callable[..., dict[str, str]]
MIB = 1 << 20
ROWS = 16384  # 4 MiB an activation
SETTINGS = {"policy": "rr", "min_quantum": "0", "max_wait": "0.1", "switch_loss": "0.5"}


def _job(stack: ExitStack, env: dict[str, str], seed: int, *more: str) -> JobProcess:
    arguments = ["--rows", str(ROWS), "--seed", str(seed), *more]
    return stack.enter_context(JobProcess(*arguments, env=env, module="benchmarks.lane_job"))


def _losses_alone(seed: int, count: int) -> list[str]:
    with ExitStack() as stack:
        job = _job(stack, {}, seed, "--iterations", str(count))
        losses: list[str] = job.wait_ready().go().result()["losses"]
        return losses


def _status(env: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(
        gpushare_command("status", "--json"),
        env=job_environment(env),
        capture_output=True,
        check=True,
        timeout=60,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _check(results: list[dict[str, Any]], seeds: list[int]) -> None:
    for seed, result in zip(seeds, results, strict=True):
        assert result["losses"] == _losses_alone(seed, len(result["losses"]))


@pytest.mark.parametrize("count", [2, 4])
def test_the_memory_of_activations_is_needed_once(count: int, coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    seeds = list(range(count))
    with ExitStack() as stack:
        jobs = [_job(stack, env, seed, "--shared", "--seconds", "4", "--linger") for seed in seeds]
        for job in jobs:
            job.wait_ready()
        books = KernelBooks(jobs, every_seconds=0.2)
        books.start()
        for job in jobs:
            job.go()
        results = [job.outcome() for job in jobs]
        sums = books.stop()
    _check(results, seeds)
    stats = [result["stats"] for result in results]
    peaks = [one["peak_backed_bytes"] for one in stats]  # of the iterations before the first close
    assert all(one["lane_bytes"] > 0.8 * max(peaks) for one in stats)
    # Towards the end all run as one; the first samples have all of it.
    steady = sorted(sums[len(sums) // 2 :])[len(sums) // 4]
    assert steady < 0.35 * sum(peaks) + 0.65 * max(peaks)
    assert all(one["spilled_total_bytes"] == 0 for one in stats)


def test_pool_is_in_status_and_goes_with_its_jobs(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    with ExitStack() as stack:
        jobs = [_job(stack, env, seed, "--shared", "--seconds", "3", "--linger") for seed in (0, 1)]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        seen = 0
        while not all(job.has_said() for job in jobs):
            device = _status(env)["devices"][0]
            pool = device["lanes"][0]["pool_bytes"]
            rooms = sum(job["room_bytes"] for job in device["jobs"])
            assert rooms + pool + device["free_bytes"] == device["capacity_bytes"]
            seen = max(seen, pool)
        assert seen > 16 * MIB
        for job in jobs:
            job.outcome()
        assert _status(env)["devices"][0]["lanes"][0]["pool_bytes"] == 0


def test_no_memory_is_shared_where_lanes_are_off(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", lanes="off", **SETTINGS)
    with ExitStack() as stack:
        jobs = [_job(stack, env, seed, "--shared", "--seconds", "2", "--linger") for seed in (0, 1)]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        assert [job.outcome()["stats"]["lane_bytes"] for job in jobs] == [0, 0]


def test_kept_and_forked_activations_stay_what_they_are(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    with ExitStack() as stack:
        more = ("--shared", "--iterations", "40", "--linger")
        jobs = [
            _job(stack, env, 0, *more, "--keep-at", "20", "--fork-at", "25"),
            _job(stack, env, 1, *more, "--fork-at", "20", "--keep-at", "25"),
        ]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        results = [job.outcome() for job in jobs]
    _check(results, [0, 1])
    assert all(result["stats"]["lane_bytes"] > 0 for result in results)


def test_a_killed_member_harms_nobody(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    with ExitStack() as stack:
        jobs = [
            _job(stack, env, seed, "--shared", "--seconds", "3", "--linger") for seed in range(3)
        ]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        while _status(env)["devices"][0]["lanes"][0]["pool_bytes"] < 16 * MIB:
            assert not any(job.has_said() for job in jobs)
        jobs[1].process.kill()
        results = [jobs[0].outcome(), jobs[2].outcome()]
        _check(results, [0, 2])


def test_members_go_on_with_the_next_coordinator(coordinator: Coordinator) -> None:
    env = coordinator(capacity="512MiB", **SETTINGS)
    with ExitStack() as stack:
        jobs = [_job(stack, env, seed, "--shared", "--seconds", "6", "--linger") for seed in (0, 1)]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        report = _status(env)
        while report["devices"][0]["lanes"][0]["pool_bytes"] < 16 * MIB:
            assert not any(job.has_said() for job in jobs)
            report = _status(env)
        subprocess.run(["kill", "-9", str(report["coordinator"]["pid"])], check=True)
        results = [job.outcome() for job in jobs]
    _check(results, [0, 1])
    for result in results:
        assert result["stats"]["reconnects"] == 1
        assert result["stats"]["lane_bytes"] > 16 * MIB  # of the next one's lane
