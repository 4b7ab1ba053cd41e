"""Co-location: jobs on one device, one after the other, and in the ways to run them together.

Every row trains the same jobs to the same step. Timed is training alone: start-up, and the end of
a process, which costs half a second of a core, come before and after all of it. Ratios are taken
against the serial row of the same minute, so that a drift of the machine cancels.
"""

from __future__ import annotations

import statistics
import sys
import threading
from contextlib import ExitStack
from typing import Any

from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

NOTHING: dict[str, str] = {}
PASSIVE = {"OMP_WAIT_POLICY": "passive"}
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
CAPACITY = "4GiB"
MOST_OVER_SERIAL = 4.0
"""Rows without gpushare are stopped here: what they lose in OpenMP's barriers has no bound."""

Results = list[dict[str, Any]]


def _jobs(count: int, *, quick: bool) -> list[list[str]]:
    steps = {"cnn": 12 if quick else 40, "transformer": 8 if quick else 30}
    jobs = []
    for number in range(count):
        name = ("cnn", "transformer")[number % 2]
        jobs.append(["--workload", name, "--seed", str(number), "--steps", str(steps[name])])
    return jobs


def _together(
    jobs: list[list[str]], env: dict[str, str], *flags: str, limit_seconds: float | None = None
) -> tuple[float, Results]:
    """All at once: seconds from the first start to the last end; at the limit, no results."""
    with ExitStack() as stack:
        running = [
            stack.enter_context(JobProcess(*job, "--linger", *flags, env=env)) for job in jobs
        ]
        for job in running:
            job.wait_ready()
        is_stopped = threading.Event()

        def stop() -> None:
            is_stopped.set()
            for job in running:
                job.process.kill()

        timer = threading.Timer(limit_seconds or 0.0, stop)
        if limit_seconds is not None:
            timer.start()
            stack.callback(timer.cancel)
        for job in running:
            job.go()
        try:
            results = [job.outcome() for job in running]
        except RuntimeError:
            if limit_seconds is None or not is_stopped.is_set():
                raise
            return limit_seconds, []
    return max(r["ended"] for r in results) - min(r["started"] for r in results), results


def _serial(jobs: list[list[str]], env: dict[str, str], *flags: str) -> tuple[float, Results]:
    """One after the other, all of them started and ready: seconds of training in all."""
    with ExitStack() as stack:
        running = [
            stack.enter_context(JobProcess(*job, "--linger", *flags, env=env)) for job in jobs
        ]
        for job in running:
            job.wait_ready()
        results = [job.go().outcome() for job in running]
    return sum(r["ended"] - r["started"] for r in results), results


def _slice_ratios(shared: Results, alone: Results) -> list[float]:
    """Mean time of an iteration past its gate over the same alone, a job each."""
    return [
        statistics.mean(one["inside_seconds"]) / statistics.mean(other["inside_seconds"])
        for one, other in zip(shared, alone, strict=True)
    ]


def _digests(results: Results) -> list[str]:
    return [result["digest"] for result in results]


class _Rows:
    """What was seen, row by row; says each on stderr, as a run takes minutes."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._samples: dict[str, list[float]] = {}
        self.is_equal = True

    def add(self, row: str, value: float) -> None:
        print(f"  {row} {value:.3f}", file=sys.stderr, flush=True)
        self._samples.setdefault(row, []).append(value)

    def median(self, row: str) -> float:
        return self._report.add_samples(row, self._samples[row])

    def check(self, results: Results, reference: Results) -> None:
        self.is_equal = self.is_equal and _digests(results) == _digests(reference)


def _run_shared(
    rows: _Rows, prefix: str, jobs: list[list[str]], serial: float, reference: Results
) -> None:
    """Under gpushare, and one after the other on its allocator, both against stock serial."""
    with private_coordinator(capacity=CAPACITY) as env:
        registered, alone = _serial(jobs, env, "--shared")
    with private_coordinator(capacity=CAPACITY) as env:
        seconds, shared = _together(jobs, env, "--shared")
    rows.add(f"{prefix}_over_serial", seconds / serial)
    rows.add(f"{prefix}_over_registered_serial", seconds / registered)
    for ratio in _slice_ratios(shared, alone):
        rows.add(f"{prefix}_slice_iteration_over_alone", ratio)
    for result in shared:
        rows.add("leases", result["stats"]["leases"] - result["stats_before"]["leases"])
    rows.check(alone, reference)
    rows.check(shared, reference)


def _run_unshared(rows: _Rows, prefix: str, jobs: list[list[str]], serial: float) -> None:
    """All at once without gpushare, in the ways there are."""
    for row, env in (("uncoordinated", NOTHING), ("passive", PASSIVE), ("one_thread", ONE_THREAD)):
        seconds, _ = _together(jobs, env, limit_seconds=MOST_OVER_SERIAL * serial)
        rows.add(f"{prefix}{row}_over_serial", seconds / serial)


def run(*, quick: bool) -> Report:
    """Two jobs (CNN, transformer) and four; 3 rounds."""
    report = Report(name="colocation")
    rows = _Rows(report)
    two, four = _jobs(2, quick=quick), _jobs(4, quick=quick)
    for number in range(1 if quick else 3):
        print(f"round {number + 1}", file=sys.stderr, flush=True)
        before, reference = _serial(two, NOTHING)
        _run_shared(rows, "two_jobs", two, before, reference)
        after, _ = _serial(two, NOTHING)
        rows.add("serial_seconds", before)
        rows.add("serial_seconds", after)
        serial = (before + after) / 2
        _run_shared(rows, "two_jobs", two, after, reference)
        _run_unshared(rows, "", two, serial)
        seconds, reference = _serial(four, NOTHING)
        _run_shared(rows, "four_jobs", four, seconds, reference)
        if number == 0:  # minutes; two jobs show the spread
            _run_unshared(rows, "four_jobs_", four, seconds)

    rows.median("leases")
    serial_seconds = rows.median("serial_seconds")
    samples = report.samples["serial_seconds"]
    report.figures = {
        "two_jobs_over_serial": rows.median("two_jobs_over_serial"),
        "two_jobs_over_registered_serial": rows.median("two_jobs_over_registered_serial"),
        "four_jobs_over_serial": rows.median("four_jobs_over_serial"),
        "four_jobs_over_registered_serial": rows.median("four_jobs_over_registered_serial"),
        "slice_iteration_over_alone": rows.median("two_jobs_slice_iteration_over_alone"),
        "four_jobs_slice_iteration_over_alone": rows.median("four_jobs_slice_iteration_over_alone"),
        "uncoordinated_over_serial": rows.median("uncoordinated_over_serial"),
        "passive_over_serial": rows.median("passive_over_serial"),
        "one_thread_over_serial": rows.median("one_thread_over_serial"),
        **{
            name: rows.median(name)
            for name in (
                "four_jobs_uncoordinated_over_serial",
                "four_jobs_passive_over_serial",
                "four_jobs_one_thread_over_serial",
            )
        },
        "fewest_leases": min(report.samples["leases"]),
        "serial_seconds": serial_seconds,
        "serial_drift": max(samples) / min(samples),
        "bit_equal": float(rows.is_equal),
    }
    report.notes += [
        "one_thread trains with other bits; serial and gpushare with the same if bit_equal is 1",
        f"rows without gpushare are stopped at {MOST_OVER_SERIAL:g} x serial: there it is at least",
    ]
    return report
