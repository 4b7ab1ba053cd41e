"""A hyper-parameter sweep of small jobs: one at a time, under `pack`, and uncoordinated.

Each job trains a small MLP in one thread, in all ways, with a pause for each batch, and ends
with the same losses in all ways. Start-up is kept out: where jobs run at once, all are ready before
the first goes.
"""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack

from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

NUM_JOBS = 20
ITERATIONS = 400
PAUSE_SECONDS = 0.002
MODULE = "benchmarks.sweep_job"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SETTINGS = {"policy": "pack", "capacity": "8GiB", "require": "1"}

Digests = list[str]


def _arguments(number: int, iterations: int, *flags: str) -> list[str]:
    rate = 0.001 * 1.2**number
    return [
        "--rate", f"{rate:g}", "--pause", str(PAUSE_SECONDS),
        "--iterations", str(iterations), *flags,
    ]  # fmt: skip


def _serial(num_jobs: int, iterations: int) -> tuple[float, Digests]:
    """The sum of what each takes alone, without gpushare."""
    seconds = 0.0
    digests = []
    for number in range(num_jobs):
        arguments = _arguments(number, iterations)
        with JobProcess(*arguments, env=ONE_THREAD, module=MODULE) as job:
            result = job.wait_ready().go().result()
        seconds += result["ended"] - result["started"]
        digests.append(result["digest"])
    return seconds, digests


def _together(num_jobs: int, iterations: int, *, is_packed: bool) -> tuple[float, Digests]:
    """From the first start to the last end."""
    with ExitStack() as stack:
        env = dict(ONE_THREAD)
        flags = ["--linger"]
        if is_packed:
            env |= stack.enter_context(private_coordinator(**SETTINGS))
            flags.append("--shared")
        jobs = []
        for number in range(num_jobs):
            arguments = _arguments(number, iterations, *flags)
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
    """3 rounds of the three ways, in turn."""
    report = Report(name="sweep")
    num_jobs = 8 if quick else NUM_JOBS
    iterations = 150 if quick else ITERATIONS
    seconds: dict[str, list[float]] = {"serial": [], "pack": [], "uncoordinated": []}
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
    for way, values in seconds.items():
        report.add_samples(f"{way}_seconds", values)
    # Of the same minute, so that a drift of the machine cancels.
    ratios = {
        f"{way}_over_pack": [a / b for a, b in zip(seconds[way], seconds["pack"], strict=True)]
        for way in ("serial", "uncoordinated")
    }
    report.figures = {name: statistics.median(values) for name, values in ratios.items()}
    report.notes.append(
        f"{num_jobs} jobs of {iterations} iterations, a thread each, {PAUSE_SECONDS * 1e3:g} ms of "
        "pause an iteration; goal: serial_over_pack >= 1.1"
    )
    return report
