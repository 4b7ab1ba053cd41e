"""Time lost to moving memory where jobs do not fit together: makespan over one after the other.

Simulated at a GPU's sizes over a grid of jobs, sizes, iterations, links and policies, with default
settings; and real jobs on the CPU, four of 0.9 of the capacity each, in turn with one after the
other.
"""

from __future__ import annotations

import itertools

from benchmarks.processes import outcomes_together, private_coordinator
from benchmarks.report import Report
from gpushare.simulate import runs

CAPACITY_GIB = 80
JOBS = (2, 5, 20)
SIZES = (0.2, 0.5, 0.65, 0.95)
"""Peaks, of the capacity."""
PERSISTENT = 0.85
"""Of a job's peak."""
ITERATION_SECONDS = (0.02, 0.5, 2.0)
LINKS_GIB = (10, 25, 60)
"""A second, in each direction; the last one duplex."""
POLICIES = ("fair", "rr", "fifo", "srtf", "priority", "deadline", "pack")
SLOW_TO_SIMULATE = ("priority", "deadline", "pack")
"""With iterations of one length only."""
JOB_SECONDS = 600
"""Of a job alone."""

REAL_JOBS = 4
REAL_ITERATIONS = 400
REAL_PASSES = 4
"""Layers that an iteration trains."""
REAL_LIVE_MIB = 384
REAL_EPHEMERAL_MIB = 64
REAL_CAPACITY = "500MiB"


def simulated(jobs: int, size: float, iteration: float, link: int, policy: str) -> float:
    """Makespan over the sum of the jobs' times alone."""
    peak = size * CAPACITY_GIB
    rows = [
        f"0,{round(JOB_SECONDS / iteration)},{iteration},{peak * PERSISTENT},{peak}"
        for _ in range(jobs)
    ]
    trace = "\n".join(["submit_s,iterations,iteration_s,persistent_gib,peak_gib", *rows])
    machine = {"capacity": f"{CAPACITY_GIB}GiB", "bandwidth": f"{link}GiB", "interference": "1"}
    machine["host_budget"] = f"{jobs * CAPACITY_GIB}GiB"
    if link == LINKS_GIB[-1]:
        machine["duplex"] = "1"
    report = runs.run(trace, [policy], machine)[0]
    if report["num_finished"] != jobs:
        raise RuntimeError(f"of {jobs} jobs of {peak} GiB {report['num_finished']} have finished")
    return float(report["makespan_seconds"]) / (jobs * JOB_SECONDS)


def _grid(*, quick: bool) -> dict[str, float]:
    found = {}
    for policy in POLICIES[:1] if quick else POLICIES:
        iterations = ITERATION_SECONDS[1:2] if policy in SLOW_TO_SIMULATE else ITERATION_SECONDS
        for jobs, size, iteration, link in itertools.product(JOBS, SIZES, iterations, LINKS_GIB):
            cell = f"{jobs} of {size} at {iteration} s, {link} GiB/s, {policy}"
            found[cell] = simulated(jobs, size, iteration, link, policy)
    return found


def _seconds(at_once: int, iterations: int) -> float:
    """Of all real jobs, so many of them at once."""
    seconds = 0.0
    flags = [
        "--live-mib", str(REAL_LIVE_MIB), "--ephemeral-mib", str(REAL_EPHEMERAL_MIB),
        "--iterations", str(iterations), "--passes", str(REAL_PASSES),
    ]  # fmt: skip
    for first in range(0, REAL_JOBS, at_once):
        jobs = [[*flags, "--seed", str(seed)] for seed in range(first, first + at_once)]
        with private_coordinator(capacity=REAL_CAPACITY) as env:
            seen = outcomes_together(jobs, env, "benchmarks.memory_job")
        seconds += max(job["ended"] for job in seen) - min(job["started"] for job in seen)
    return seconds


def run(*, quick: bool) -> Report:
    """The whole grid once; three rounds of real jobs."""
    report = Report(name="thrash")
    grid = _grid(quick=quick)
    report.figures["median_over_serial"] = report.add_samples("over_serial", list(grid.values()))
    worst = max(grid, key=lambda cell: grid[cell])
    report.figures["worst_over_serial"] = grid[worst]
    report.notes.append(f"worst: {worst}")
    for policy in POLICIES[: 1 if quick else None]:
        found = [value for cell, value in grid.items() if cell.endswith(policy)]
        report.figures[f"worst_{policy}"] = max(found)
    iterations = REAL_ITERATIONS // 10 if quick else REAL_ITERATIONS
    ratios = []
    for _ in range(1 if quick else 3):
        serial = _seconds(1, iterations)
        ratios.append(_seconds(REAL_JOBS, iterations) / serial)
    report.figures["real_four_over_serial"] = report.add_samples("real_four_over_serial", ratios)
    return report
