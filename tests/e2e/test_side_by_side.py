"""With several lanes jobs that fit run at the same time; those that do not take turns."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import read_status
from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]
ROWS = 16384  # 4 MiB an activation, 30 MiB or more an iteration
NUM_CPUS = len(os.sched_getaffinity(0))
NUM_CORES = len(
    {Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list").read_text()
     for cpu in os.sched_getaffinity(0)}
)  # fmt: skip
SETTINGS = {"num_lanes": "2", "policy": "rr", "min_quantum": "0", "switch_loss": "0.5"}


def _job(
    stack: ExitStack, folder: Path, env: dict[str, str] | None, seed: int, *more: str
) -> JobProcess:
    """A job at the coordinator of `env`, or on stock torch."""
    shared = [] if env is None else ["--shared"]
    arguments = ["--rows", str(ROWS), "--seed", str(seed), "--folder", str(folder), *shared, *more]
    return stack.enter_context(JobProcess(*arguments, env=env, module="tests.e2e.beside_job"))


def _run(
    folder: Path, env: dict[str, str] | None, seeds: list[int], *more: str
) -> list[dict[str, Any]]:
    """The jobs' results."""
    with ExitStack() as stack:
        return start_all([_job(stack, folder, env, seed, *more) for seed in seeds])


def _run_alone(folder: Path, seed: int, rows: str, count: str) -> list[str]:
    """The losses of one thread on stock torch."""
    with JobProcess(
        "--rows", rows, "--seed", str(seed), "--folder", str(folder), "--iterations", count,
        env={"OMP_NUM_THREADS": "1"}, module="tests.e2e.beside_job",
    ) as job:  # fmt: skip
        losses: list[str] = job.wait_ready().go().result()["losses"]
        return losses


def _check(results: list[dict[str, Any]], folder: Path, *more: str) -> None:
    for seed, result in enumerate(results):
        assert result["losses"] == _run(folder, None, [seed], *more)[0]["losses"]


def test_jobs_that_fit_are_in_their_iterations_at_the_same_time(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(capacity="192MiB", **SETTINGS)
    # Past the iterations from which their sizes are learned. With one lane they wait for ever.
    results = _run(tmp_path, env, [0, 1], "--iterations", "16", "--meet-at", "8", "--jobs", "2")
    assert [result["num_together"] > 0 for result in results] == [True, True]
    assert [result["stats"]["spilled_total_bytes"] for result in results] == [0, 0]
    _check(results, tmp_path, "--iterations", "16")


def test_jobs_that_do_not_fit_side_by_side_take_turns(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(capacity="56MiB", **SETTINGS, max_wait="0.2s")
    results = _run(tmp_path, env, [0, 1], "--iterations", "24")
    assert [result["num_together"] for result in results] == [0, 0]
    assert min(result["stats"]["leases"] for result in results) >= 3
    _check(results, tmp_path, "--iterations", "24")


def test_of_two_that_grow_at_the_same_time_one_waits_for_the_other(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    # What an open lease uses of a pool cannot be given.
    env = coordinator(capacity="112MiB", **SETTINGS, max_wait="0.2s", lanes="off")
    growing = ("--meet-at", "8", "--jobs", "2", "--grow-mib", "100")
    results = _run(tmp_path, env, [0, 1], "--iterations", "12", *growing)
    # Both are inside, and 200 MiB of 112 are needed: one gives what it has in its iteration.
    assert sum(result["stats"]["spilled_total_bytes"] for result in results) > 0
    _check(results, tmp_path, "--iterations", "12")


def _run_packed(
    coordinator: Coordinator, folder: Path, rows: str, count: str, **variables: str
) -> list[dict[str, Any]]:
    """The results of two jobs that fit, and may run side by side where that pays."""
    settings = {"policy": "pack", "num_lanes": "2", "min_quantum": "0.05s"}
    env = coordinator(capacity="768MiB", **settings) | variables
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(
                    "--rows", rows, "--seed", str(seed), "--folder", str(folder),
                    "--iterations", count, "--shared", env=env, module="tests.e2e.beside_job",
                )
            )
            for seed in (0, 1)
        ]  # fmt: skip
        return start_all(jobs)


def test_under_pack_one_thread_jobs_come_to_run_side_by_side(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    rows, count = "2048", "150"
    results = _run_packed(coordinator, tmp_path, rows, count, OMP_NUM_THREADS="1")
    # Alone first, to be timed; then on trial at least, whatever this machine makes of it.
    assert [result["num_together"] > 0 for result in results] == [True, True]
    for seed, result in enumerate(results):
        alone = _run_alone(tmp_path, seed, rows, count)
        assert result["losses"] == alone
        assert [1, NUM_CPUS] in result["cores"], "alone"
        has_part = any(cpus < NUM_CPUS for _, cpus in result["cores"])
        assert has_part == (NUM_CORES > 1), "a part of the cores"
        assert result["cores_after"] == [1, NUM_CPUS]


@pytest.mark.skipif(NUM_CORES < 2, reason="one core has no parts")
def test_under_pack_elastic_jobs_use_fewer_threads_beside_others(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    variables = {
        "OMP_NUM_THREADS": str(NUM_CPUS),
        # Threads that wait do not spin: other tests may run beside this one.
        "OMP_WAIT_POLICY": "passive",
        "GPUSHARE_ELASTIC_THREADS": "1",
    }
    results = _run_packed(coordinator, tmp_path, "2048", "150", **variables)
    for result in results:
        seen = {tuple(each) for each in result["cores"]}
        assert (NUM_CPUS, NUM_CPUS) in seen, "alone"
        fewer = seen - {(NUM_CPUS, NUM_CPUS)}
        assert fewer, "beside the other"
        assert all(threads <= cpus < NUM_CPUS for threads, cpus in fewer)
        assert result["cores_after"] == [NUM_CPUS, NUM_CPUS]


def test_a_killed_holder_leaves_the_other_lane_alone(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(capacity="192MiB", **SETTINGS, linger="60s")
    meeting = ("--meet-at", "8", "--jobs", "2")
    with ExitStack() as stack:
        job = _job(stack, tmp_path, env, 0, "--iterations", "40", *meeting).wait_ready()
        killed = _job(stack, tmp_path, env, 1, "--iterations", "1000000", *meeting).wait_ready()
        for each in (job, killed):
            each.go()
        while len(list(tmp_path.glob("met-*"))) < 2:
            assert not job.has_said()
            assert not killed.has_said()
        # Nobody waits for its lane, so it holds that lease until it is gone.
        killed.process.kill()
        killed.process.wait()
        # Its lane and its memory are the next one's.
        next_one = _job(stack, tmp_path, env, 2, "--iterations", "12").wait_ready().go().result()
        result = job.result()
        while (device := read_status(env)["devices"][0])["jobs"]:
            pass
    assert device["free_bytes"] == device["capacity_bytes"]
    assert [lane["holder"] for lane in device["lanes"]] == [0, 0]
    for seed, losses in ((0, result["losses"]), (2, next_one["losses"])):
        count = str(len(losses))
        assert losses == _run(tmp_path, None, [seed], "--iterations", count)[0]["losses"]


def test_two_holders_go_on_with_the_next_coordinator(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(capacity="192MiB", **SETTINGS)
    more = ("--iterations", "16", "--meet-at", "8", "--jobs", "2", "--stay")
    with ExitStack() as stack:
        jobs = [_job(stack, tmp_path, env, seed, *more) for seed in (0, 1)]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        while len(list(tmp_path.glob("met-*"))) < 2:
            assert not any(job.has_said() for job in jobs)
        pid = read_status(env)["coordinator"]["pid"]
        os.kill(pid, signal.SIGKILL)
        # Each says Hello with a lease, and has a lane again.
        while True:
            assert not any(job.has_said() for job in jobs)
            report = read_status(env)
            if not report or report["coordinator"]["pid"] == pid:
                continue
            if all(lane["holder"] for lane in report["devices"][0]["lanes"]):
                break
        (tmp_path / "go-on").touch()
        results = [job.result() for job in jobs]
    assert [result["stats"]["reconnects"] for result in results] == [1, 1]
    _check(results, tmp_path, "--iterations", "16")
