"""A hyper-parameter sweep of small jobs: one at a time, under `pack`, and uncoordinated.

Each job trains a small MLP in one thread, in all ways, with a pause for each batch, and ends
with the same losses in all ways. Then the same with as many threads as there are cores: one at a
time, and under `pack` where each uses as many as its part of the cores has CPUs, which may change
the last bits of a loss. Start-up is kept out: where jobs run at once, all are ready before the
first goes.
"""

from __future__ import annotations

import os
import statistics
import time
from contextlib import ExitStack

from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

NUM_JOBS = 20
ITERATIONS = 400
PAUSE_SECONDS = 0.002
MODULE = "benchmarks.sweep_job"
NUM_CORES = len(os.sched_getaffinity(0))
ELASTIC = {"GPUSHARE_ELASTIC_THREADS": "1"}
SETTINGS = {"policy": "pack", "capacity": "8GiB", "require": "1"}

Digests = list[str]


def _environment(threads: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def _arguments(number: int, iterations: int, threads: int, *flags: str) -> list[str]:
    rate = 0.001 * 1.2**number
    return [
        "--rate", f"{rate:g}", "--pause", str(PAUSE_SECONDS), "--threads", str(threads),
        "--iterations", str(iterations), *flags,
    ]  # fmt: skip


def _serial(num_jobs: int, iterations: int, threads: int = 1) -> tuple[float, Digests]:
    """The sum of what each takes alone, without gpushare."""
    seconds = 0.0
    digests = []
    for number in range(num_jobs):
        arguments = _arguments(number, iterations, threads)
        with JobProcess(*arguments, env=_environment(threads), module=MODULE) as job:
            result = job.wait_ready().go().result()
        seconds += result["ended"] - result["started"]
        digests.append(result["digest"])
    return seconds, digests


def _together(
    num_jobs: int, iterations: int, *, is_packed: bool, threads: int = 1
) -> tuple[float, Digests]:
    """From the first start to the last end."""
    with ExitStack() as stack:
        env = _environment(threads) | (ELASTIC if threads > 1 else {})
        flags = ["--linger"]
        if is_packed:
            env |= stack.enter_context(private_coordinator(**SETTINGS))
            flags.append("--shared")
        jobs = []
        for number in range(num_jobs):
            arguments = _arguments(number, iterations, threads, *flags)
            job = stack.enter_context(JobProcess(*arguments, env=env, module=MODULE))
            # One after the other: imports of all at once take longer.
            jobs.append(job.wait_ready())
        begin = time.monotonic()
        for job in jobs:
            job.go()
        results = [job.outcome() for job in jobs]
    return max(result["ended"] for result in results) - begin, [
        result["digest"] for result in results
    ]


def run(*, quick: bool) -> Report:
    """3 rounds of all ways, in turn."""
    report = Report(name="sweep")
    num_jobs = 8 if quick else NUM_JOBS
    iterations = 150 if quick else ITERATIONS
    ways = ("serial", "pack", "uncoordinated", "all_threads_serial", "elastic")
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(1 if quick else 3):
        found = {
            "serial": _serial(num_jobs, iterations),
            "pack": _together(num_jobs, iterations, is_packed=True),
            "uncoordinated": _together(num_jobs, iterations, is_packed=False),
        }
        for way, (taken, digests) in found.items():
            seconds[way].append(taken)
            if digests != found["serial"][1]:
                raise RuntimeError(f"{way}: other losses than one at a time")
        seconds["all_threads_serial"].append(_serial(num_jobs, iterations, NUM_CORES)[0])
        elastic, _ = _together(num_jobs, iterations, is_packed=True, threads=NUM_CORES)
        seconds["elastic"].append(elastic)
    for way, values in seconds.items():
        report.add_samples(f"{way}_seconds", values)
    # Of the same minute, so that a drift of the machine cancels.
    pairs = [("serial", "pack"), ("uncoordinated", "pack"), ("all_threads_serial", "elastic")]
    ratios = {
        f"{way}_over_{other}": [a / b for a, b in zip(seconds[way], seconds[other], strict=True)]
        for way, other in pairs
    }
    report.figures = {name: statistics.median(values) for name, values in ratios.items()}
    report.notes.append(
        f"{num_jobs} jobs of {iterations} iterations, a thread each, {PAUSE_SECONDS * 1e3:g} ms of "
        f"pause an iteration; all_threads and elastic: {NUM_CORES} threads alone; "
        "goal: serial_over_pack >= 1.1"
    )
    return report
