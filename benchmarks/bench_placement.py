"""Jobs that name no device, on several devices: placed as they come, and as if all were known.

Twelve jobs come one after the other to a coordinator of four CPU devices. How long a job works is
known to nobody before it runs; it says how many iterations it has. The clairvoyant placement knows
all jobs' work, and each job names its device then. Both really run.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack

from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

DEVICES = 4
JOBS = 12
DEVICE_MEBIBYTES = 64
JOB_MEBIBYTES = (8, 24)
"""Least and most."""
WORK_SECONDS = (2.0, 8.0)
"""Least and most, of one job."""
ARRIVAL_SECONDS = 0.5
"""Between two jobs."""
SEEDS = (1, 2, 3)


def clairvoyant(works: Sequence[float], num_devices: int) -> list[int]:
    """Returns the device of each job, such that all are done as early as can be.

    Args:
        works: Of each job, in seconds; one comes every ``ARRIVAL_SECONDS``.
        num_devices: At least 1.
    """
    ends = [0.0] * num_devices
    chosen = [0] * len(works)
    best: list[int] = []
    least = float("inf")

    def place(job: int) -> None:
        nonlocal best, least
        if job == len(works):
            best, least = list(chosen), max(ends)
            return
        # The device that is done first comes first, so the first placement found is a good one.
        for device in sorted(range(num_devices), key=ends.__getitem__):
            before = ends[device]
            end = max(before, job * ARRIVAL_SECONDS) + works[job]
            # One of several devices that are alike is enough, and none helps that is too late.
            if end >= least or before in ends[:device]:
                continue
            ends[device], chosen[job] = end, device
            place(job + 1)
            ends[device] = before

    place(0)
    return best


def _makespan(env: dict[str, str], works: Sequence[float], devices: Sequence[str]) -> float:
    """Seconds from the first job's begin to the last one's end."""
    memory = random.Random(0)
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(
                    f"--work={work}", f"--mebibytes={memory.randint(*JOB_MEBIBYTES)}",
                    env=env | {"GPUSHARE_DEVICE": device}, module="benchmarks.placed_job",
                )
            )
            for work, device in zip(works, devices, strict=True)
        ]  # fmt: skip
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
            time.sleep(ARRIVAL_SECONDS)
        outcomes = [job.outcome() for job in jobs]
    return max(each["end"] for each in outcomes) - min(each["begin"] for each in outcomes)


def run(*, quick: bool) -> Report:
    """Three draws of the jobs' work; quick: one, of four jobs on two devices."""
    report = Report(name="placement")
    num_devices, num_jobs = (2, 4) if quick else (DEVICES, JOBS)
    names = [f"cpu:{i}" for i in range(num_devices)]
    budgets = ",".join(f"{name}={DEVICE_MEBIBYTES}MiB" for name in names)
    samples: dict[str, list[float]] = {}
    for seed in SEEDS[:1] if quick else SEEDS:
        draw = random.Random(seed)
        works = [draw.uniform(*WORK_SECONDS) / (4 if quick else 1) for _ in range(num_jobs)]
        known = [names[i] for i in clairvoyant(works, num_devices)]
        with private_coordinator(devices=budgets) as env:
            placed = _makespan(env, works, ["any"] * num_jobs)
        with private_coordinator(devices=budgets) as env:
            best = _makespan(env, works, known)
        for name, value in {
            "makespan_over_clairvoyant": placed / best,
            "placed_seconds": placed,
            "clairvoyant_seconds": best,
        }.items():
            samples.setdefault(name, []).append(value)
    report.figures = {name: report.add_samples(name, values) for name, values in samples.items()}
    report.figures["worst_over_clairvoyant"] = max(samples["makespan_over_clairvoyant"])
    report.notes.append(
        f"{num_jobs} jobs on {num_devices} CPU devices; an iteration sleeps, so that the devices "
        "work at the same time whatever the number of cores"
    )
    return report
