"""Shares of four jobs with weights 1, 2, 3 and 4 and iterations of different lengths.

Each always wants the device. A job's share is its part of the time that all spent in iterations;
its error is relative to the share that its weight says.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from benchmarks.paced_job import overlap, products_of
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

ITERATIONS = {1: 0.040, 2: 0.007, 3: 0.090, 4: 0.020}
"""Seconds of an iteration, by weight."""
SETTLE_SECONDS = 2.0


def _shares(seconds: float) -> dict[int, float]:
    products = products_of(1.0)
    with private_coordinator(policy="fair") as env, ExitStack() as stack:
        jobs = {
            weight: stack.enter_context(
                JobProcess(
                    "--name", f"weight{weight}", "--weight", str(weight),
                    "--products", str(round(products * length)),
                    env=env, module="benchmarks.paced_job",
                )
            )
            for weight, length in ITERATIONS.items()
        }  # fmt: skip
        for job in jobs.values():
            job.wait_ready()
        for job in jobs.values():
            job.go()
        begin = time.monotonic() + SETTLE_SECONDS
        time.sleep(SETTLE_SECONDS + seconds)
        for job in jobs.values():
            job.go()
        end = begin + seconds
        used = {
            weight: sum(overlap(each, (begin, end)) for each in job.outcome()["iterations"])
            for weight, job in jobs.items()
        }
    return {weight: time_used / sum(used.values()) for weight, time_used in used.items()}


def run(*, quick: bool) -> Report:
    """3 rounds of 60 s."""
    report = Report(name="fairness")
    worst = []
    shares: dict[int, list[float]] = {weight: [] for weight in ITERATIONS}
    for _ in range(1 if quick else 3):
        seen = _shares(10.0 if quick else 60.0)
        for weight, share in seen.items():
            shares[weight].append(share)
        total = sum(ITERATIONS)
        worst.append(max(abs(share * total / weight - 1) for weight, share in seen.items()))
    for weight, values in shares.items():
        report.add_samples(f"share_weight_{weight}", values)
    report.figures = {"worst_share_error": report.add_samples("worst_share_error", worst)}
    return report
