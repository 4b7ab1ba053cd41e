"""Average completion time of twelve training jobs that arrive one after the other, by policy.

Lengths are drawn from a log-normal distribution, as those of a shared cluster look like, with a
fixed seed; the jobs train small models, one thread each. Start-up is kept out: all processes are
ready before the first job arrives. A job's completion time counts from its arrival.
"""

from __future__ import annotations

import random
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

NUM_JOBS = 12
WORKLOADS = ("mlp", "cnn", "transformer", "lstm")
MEDIAN_SECONDS = 3.0
SIGMA = 1.0
MOST_SECONDS = 24.0
PAUSE_SECONDS = 1.0
"""Between two arrivals."""
WARM_UP = 3
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SEED = 1


@dataclass(frozen=True, kw_only=True)
class MixJob:
    """One of the jobs."""

    workload: str
    steps: int
    arrival: float
    """Seconds after the first."""


def _step_seconds(workload: str) -> float:
    """Of a step alone, the median."""
    arguments = ["--workload", workload, "--steps", "12"]
    with JobProcess(*arguments, env=ONE_THREAD) as job:
        return statistics.median(job.wait_ready().go().result()["iteration_seconds"])


def make_jobs(step_seconds: dict[str, float], *, scale: float) -> list[MixJob]:
    """The jobs in order of their arrival."""
    lengths = random.Random(SEED)
    jobs = []
    for number in range(NUM_JOBS):
        workload = WORKLOADS[number % len(WORKLOADS)]
        length = MEDIAN_SECONDS * lengths.lognormvariate(0.0, SIGMA)
        seconds = min(length, MOST_SECONDS) * scale
        steps = max(2, round(seconds / step_seconds[workload]))
        arrival = number * PAUSE_SECONDS * scale
        jobs.append(MixJob(workload=workload, steps=steps, arrival=arrival))
    return jobs


def _run(jobs: list[MixJob], policy: str) -> list[float]:
    """Each job's completion time. An empty policy: without gpushare, all at once."""
    with ExitStack() as stack:
        env = dict(ONE_THREAD)
        flags = ["--warm-up", str(WARM_UP), "--linger"]
        if policy:
            settings = {"policy": policy, "capacity": "8GiB", "require": "1"}
            env |= stack.enter_context(private_coordinator(**settings))
            flags += ["--shared", "--known-length", "--park"]
        processes = [
            stack.enter_context(
                JobProcess(
                    "--workload", job.workload, "--steps", str(job.steps), "--seed", str(number),
                    "--name", f"job{number}", *flags, env=env,
                )
            )
            for number, job in enumerate(jobs)
        ]  # fmt: skip
        for process in processes:
            process.wait_ready()
        begin = time.monotonic()
        for job, process in zip(jobs, processes, strict=True):
            time.sleep(max(0.0, begin + job.arrival - time.monotonic()))
            process.go()
        ends = [process.outcome()["ended"] for process in processes]
    return [end - begin - job.arrival for job, end in zip(jobs, ends, strict=True)]


def run(*, quick: bool) -> Report:
    """3 rounds of fifo, srtf, fair and all at once, in turn."""
    report = Report(name="mix")
    step_seconds = {workload: _step_seconds(workload) for workload in WORKLOADS}
    jobs = make_jobs(step_seconds, scale=0.2 if quick else 1.0)
    averages: dict[str, list[float]] = {}
    worst: dict[str, list[float]] = {}
    for _ in range(1 if quick else 3):
        for policy in ("fifo", "srtf", "fair", ""):
            times = _run(jobs, policy)
            averages.setdefault(policy, []).append(statistics.mean(times))
            worst.setdefault(policy, []).append(max(times))
    average = {
        policy: report.add_samples(f"average_{policy or 'uncoordinated'}_seconds", values)
        for policy, values in averages.items()
    }
    for policy, values in worst.items():
        report.add_samples(f"worst_{policy or 'uncoordinated'}_seconds", values)
    report.figures = {
        "fifo_over_srtf": average["fifo"] / average["srtf"],
        "fifo_over_fair": average["fifo"] / average["fair"],
        "uncoordinated_over_srtf": average[""] / average["srtf"],
    }
    total = sum(job.steps * step_seconds[job.workload] for job in jobs)
    report.notes.append(
        f"{NUM_JOBS} jobs, {total:.0f} s of work: "
        + ", ".join(f"{job.workload} x {job.steps}" for job in jobs)
    )
    return report
