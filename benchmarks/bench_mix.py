"""Average completion time of twelve training jobs that arrive one after the other, by policy.

Lengths are drawn from a log-normal distribution with the spread of those of Alibaba's cluster
(`gpushare.simulate.generate`), cut off, with a fixed seed; the jobs train small models, one thread
each. Start-up is kept out: all processes are ready before the first job arrives. A job's completion
time counts from its arrival.

The simulator predicts the same, from the times of each model's step alone, measured before and
after each round; the jobs fit together, so it is told nothing of memory.
"""

from __future__ import annotations

import random
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report
from gpushare.simulate import clusters, runs

NUM_JOBS = 12
WORKLOADS = ("mlp", "cnn", "transformer", "lstm")
MEDIAN_SECONDS = 1.5
MOST_SECONDS = 24.0
PAUSE_SECONDS = 1.0
"""Between two arrivals."""
WARM_UP = 3
CAPACITY = "8GiB"
POLICIES = ("fifo", "srtf", "fair")
ALONE_STEPS = 60
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SEED = 1


@dataclass(frozen=True, kw_only=True)
class MixJob:
    """One of the jobs."""

    workload: str
    steps: int
    arrival: float
    """Seconds after the first."""


class Step(NamedTuple):
    """What a step takes alone, in seconds, as a registered job."""

    iteration: float
    gap: float
    """Until the next iteration begins: the batch is made."""

    @property
    def seconds(self) -> float:
        """From one to the next."""
        return self.iteration + self.gap


def _step(workload: str) -> Step:
    """The medians."""
    arguments = ["--workload", workload, "--steps", str(ALONE_STEPS), "--shared"]
    with (
        private_coordinator(capacity=CAPACITY, require="1") as env,
        JobProcess(*arguments, env=ONE_THREAD | env) as job,
    ):
        seen = job.wait_ready().go().result()
    iteration = statistics.median(seen["inside_seconds"])
    return Step(iteration, statistics.median(seen["iteration_seconds"]) - iteration)


def _steps() -> dict[str, Step]:
    return {workload: _step(workload) for workload in WORKLOADS}


def _mean(first: dict[str, Step], second: dict[str, Step]) -> dict[str, Step]:
    return {
        workload: Step(*map(statistics.mean, zip(step, second[workload], strict=True)))
        for workload, step in first.items()
    }


def to_trace(jobs: list[MixJob], steps: dict[str, Step]) -> str:
    """The jobs as the simulator reads them."""
    lines = ["submit_s,iterations,iteration_s,gap_s"]
    for job in jobs:
        step = steps[job.workload]
        lines.append(f"{job.arrival:.6f},{job.steps},{step.iteration:.6f},{step.gap:.6f}")
    return "\n".join(lines) + "\n"


def _predict(jobs: list[MixJob], steps: dict[str, Step]) -> dict[str, float]:
    """The average completion time under each policy, in seconds."""
    reports = runs.run(to_trace(jobs, steps), POLICIES, {"capacity": CAPACITY})
    return {report["policy"]: report["completion_seconds"]["average"] for report in reports}


def make_jobs(steps: dict[str, Step], *, scale: float) -> list[MixJob]:
    """The jobs in order of their arrival."""
    lengths = random.Random(SEED)
    jobs = []
    for number in range(NUM_JOBS):
        workload = WORKLOADS[number % len(WORKLOADS)]
        length = MEDIAN_SECONDS * lengths.lognormvariate(0.0, clusters.ALIBABA_SIGMA)
        seconds = min(length, MOST_SECONDS) * scale
        num_steps = max(2, round(seconds / steps[workload].seconds))
        arrival = number * PAUSE_SECONDS * scale
        jobs.append(MixJob(workload=workload, steps=num_steps, arrival=arrival))
    return jobs


def _run(jobs: list[MixJob], policy: str) -> list[float]:
    """Each job's completion time. An empty policy: without gpushare, all at once."""
    with ExitStack() as stack:
        env = dict(ONE_THREAD)
        flags = ["--warm-up", str(WARM_UP), "--linger"]
        if policy:
            settings = {"policy": policy, "capacity": CAPACITY, "require": "1"}
            env |= stack.enter_context(private_coordinator(**settings))
            flags += ["--shared", "--known-length", "--park"]
        # One after the other: `fifo` goes by when jobs registered, as they would when they arrive.
        processes = [
            stack.enter_context(
                JobProcess(
                    "--workload", job.workload, "--steps", str(job.steps), "--seed", str(number),
                    "--name", f"job{number}", *flags, env=env,
                )
            ).wait_ready()
            for number, job in enumerate(jobs)
        ]  # fmt: skip
        begin = time.monotonic()
        for job, process in zip(jobs, processes, strict=True):
            time.sleep(max(0.0, begin + job.arrival - time.monotonic()))
            process.go()
        ends = [process.outcome()["ended"] for process in processes]
    return [end - begin - job.arrival for job, end in zip(jobs, ends, strict=True)]


def run(*, quick: bool) -> Report:
    """3 rounds of fifo, srtf, fair and all at once, in turn, each beside its prediction."""
    report = Report(name="mix")
    jobs: list[MixJob] = []
    averages: dict[str, list[float]] = {}
    worst: dict[str, list[float]] = {}
    over_real: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    for _ in range(1 if quick else 3):
        before = _steps()
        jobs = jobs or make_jobs(before, scale=0.2 if quick else 1.0)
        for policy in (*POLICIES, ""):
            times = _run(jobs, policy)
            averages.setdefault(policy, []).append(statistics.mean(times))
            worst.setdefault(policy, []).append(max(times))
        steps = _mean(before, _steps())
        predicted = _predict(jobs, steps)
        for policy in POLICIES:
            over_real[policy].append(predicted[policy] / averages[policy][-1])
    average = {
        policy: report.add_samples(f"average_{policy or 'uncoordinated'}_seconds", values)
        for policy, values in averages.items()
    }
    for policy, values in worst.items():
        report.add_samples(f"worst_{policy or 'uncoordinated'}_seconds", values)
    ratios = [
        report.add_samples(f"predicted_over_real_{policy}", values)
        for policy, values in over_real.items()
    ]
    report.figures = {
        "fifo_over_srtf": average["fifo"] / average["srtf"],
        "fifo_over_fair": average["fifo"] / average["fair"],
        "uncoordinated_over_srtf": average[""] / average["srtf"],
        "predicted_over_real": max(ratios, key=lambda ratio: abs(ratio - 1)),
    }
    report.notes.append(
        f"{NUM_JOBS} jobs, {sum(job.steps * steps[job.workload].seconds for job in jobs):.0f} s of "
        "work: " + ", ".join(f"{job.workload} x {job.steps}" for job in jobs)
    )
    report.notes.append("predicted_over_real: of the policy that it is farthest from 1 for")
    return report
