"""Co-location: jobs on one device, one after the other, and in the ways to run them together.

Every row trains the same jobs to the same step; start-up is excluded. Rows are run in turn, round
by round, each round bracketed by the serial row, so that a drift of the machine shows in it.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from typing import Any

from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

PASSIVE = {"OMP_WAIT_POLICY": "passive"}
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
Results = list[dict[str, Any]]


def _jobs(count: int, *, quick: bool) -> list[list[str]]:
    steps = {"cnn": 12 if quick else 120, "transformer": 8 if quick else 60}
    jobs = []
    for number in range(count):
        name = ("cnn", "transformer")[number % 2]
        share = 1 if count == 2 else 2  # four jobs: half the steps each, the same work in all
        jobs.append(
            ["--workload", name, "--seed", str(number), "--steps", str(steps[name] // share)]
        )
    return jobs


def _together(jobs: list[list[str]], env: dict[str, str], *flags: str) -> tuple[float, Results]:
    """All at once: seconds from the first start to the last end."""
    with ExitStack() as stack:
        running = [stack.enter_context(JobProcess(*job, *flags, env=env)) for job in jobs]
        for job in running:
            job.wait_ready()
        for job in running:
            job.go()
        results = [job.result() for job in running]
    return max(r["ended"] for r in results) - min(r["started"] for r in results), results


def _serial(jobs: list[list[str]], env: dict[str, str], *flags: str) -> tuple[float, Results]:
    """One after the other, all of them started and ready: seconds of training in all."""
    with ExitStack() as stack:
        running = [stack.enter_context(JobProcess(*job, *flags, env=env)) for job in jobs]
        for job in running:
            job.wait_ready()
        results = [job.go().result() for job in running]
    return sum(r["ended"] - r["started"] for r in results), results


def _busy_per_iteration(results: Results) -> list[float]:
    """Mean seconds inside an iteration, a job each: what its gate saw, without waiting."""
    return [
        (r["stats"]["busy_seconds"] - r["stats_before"]["busy_seconds"])
        / (r["stats"]["iterations"] - r["stats_before"]["iterations"])
        for r in results
    ]


def _digests(results: Results) -> list[str]:
    return [result["digest"] for result in results]


def run(*, quick: bool) -> Report:
    """Two jobs (CNN, transformer) and four; 3 rounds."""
    report = Report(name="colocation")
    rounds = 1 if quick else 3
    totals: dict[str, list[float]] = {}
    slices: list[float] = []
    leases: list[float] = []
    equal = True

    def note(row: str, seconds: float) -> None:
        totals.setdefault(row, []).append(seconds)

    two, four = _jobs(2, quick=quick), _jobs(4, quick=quick)
    for _ in range(rounds):
        seconds, reference = _serial(two, {})
        note("serial", seconds)
        with private_coordinator(capacity="4GiB") as env:
            seconds, alone = _serial(two, env, "--shared")
            note("registered_serial", seconds)
        with private_coordinator(capacity="4GiB") as env:
            seconds, shared = _together(two, env, "--shared")
            note("gpushare", seconds)
        slices += [
            a / b
            for a, b in zip(_busy_per_iteration(shared), _busy_per_iteration(alone), strict=True)
        ]
        leases += [float(r["stats"]["leases"] - r["stats_before"]["leases"]) for r in shared]
        equal = equal and _digests(shared) == _digests(reference) == _digests(alone)
        for row, env in (("uncoordinated", {}), ("passive", PASSIVE), ("one_thread", ONE_THREAD)):
            note(row, _together(two, env)[0])
        seconds, _ = _serial(two, {})
        note("serial", seconds)
        seconds, reference = _serial(four, {})
        note("serial_four", seconds)
        with private_coordinator(capacity="4GiB") as env:
            seconds, shared = _together(four, env, "--shared")
            note("gpushare_four", seconds)
        equal = equal and _digests(shared) == _digests(reference)

    medians = {row: report.add_samples(f"{row}_seconds", values) for row, values in totals.items()}
    serial = medians["serial"]
    report.figures = {
        "two_jobs_over_serial": medians["gpushare"] / serial,
        "two_jobs_over_registered_serial": medians["gpushare"] / medians["registered_serial"],
        "four_jobs_over_serial": medians["gpushare_four"] / medians["serial_four"],
        "slice_iteration_over_alone": statistics.median(slices),
        "uncoordinated_over_serial": medians["uncoordinated"] / serial,
        "passive_over_serial": medians["passive"] / serial,
        "one_thread_over_serial": medians["one_thread"] / serial,
        "serial_drift": max(totals["serial"]) / min(totals["serial"]),
        "bit_equal": float(equal),
    }
    report.add_samples("slice_iteration_ratios", slices)
    report.add_samples("leases", leases)
    report.notes.append(
        "one_thread trains with other bits; serial, gpushare: identical if bit_equal"
    )
    return report
