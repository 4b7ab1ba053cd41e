"""What sharing costs jobs of which no two fit together, with the default quantum.

Serial is the same jobs one after the other, each alone with all of the device, registered and on
gpushare's allocator: so the ratio is the price of taking turns, not of another allocator. One half
of them runs before the shared run and one after it, so that a drift of the machine cancels. Timed
is all from the first allocation on, without start-up and end of processes.
"""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.memory_job import LAYER_MIB, MIB
from benchmarks.processes import outcomes_together, private_coordinator

if TYPE_CHECKING:
    from benchmarks.report import Report

EPHEMERAL_MIB = 64
ITERATION_SECONDS = 0.04

Results = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """Equal jobs but for their seeds."""

    name: str
    count: int
    share: float
    """Of the capacity, live and ephemeral, each job."""
    capacity_mib: int
    iterations: int
    passes: int
    """Layers trained in an iteration: its length."""
    gap_seconds: float = 0.0

    def arguments(self, seed: int) -> list[str]:
        """Of the job with this seed."""
        layers = int((self.share * self.capacity_mib - EPHEMERAL_MIB) // LAYER_MIB)
        return [
            *("--live-mib", str(layers * LAYER_MIB), "--ephemeral-mib", str(EPHEMERAL_MIB)),
            *("--iterations", str(self.iterations), "--passes", str(self.passes)),
            *("--gap-seconds", str(self.gap_seconds), "--seed", str(seed)),
        ]


def _run(case: Case, seeds: range) -> Results:
    """These jobs at once on a device of their own; their processes end after the last."""
    with private_coordinator(capacity=f"{case.capacity_mib}MiB") as env:
        arguments = [case.arguments(seed) for seed in seeds]
        return outcomes_together(arguments, env, "benchmarks.memory_job")


def _serial(case: Case, seeds: range) -> Results:
    return [result for seed in seeds for result in _run(case, range(seed, seed + 1))]


def _calibrated_passes(seconds: float) -> int:
    """Layers that this machine trains in so many seconds."""
    case = Case(name="", count=1, share=0.9, capacity_mib=256, iterations=20, passes=10)
    seen: list[float] = _run(case, range(1))[0]["iteration_seconds"]
    return max(1, round(seconds * 10 / statistics.median(seen)))


def _measure_case(report: Report, case: Case) -> bool:
    """Adds the case's figure; whether all bits were equal."""
    half = case.count // 2
    before = _serial(case, range(half))
    shared = _run(case, range(case.count))
    serial = before + _serial(case, range(half, case.count))
    alone_seconds = [result["ended"] - result["started"] for result in serial]
    together = max(r["ended"] for r in shared) - min(r["started"] for r in shared)
    report.figures[f"{case.name}_over_serial"] = together / sum(alone_seconds)
    print(
        f"  {case.name}: together {together:.2f} s, serial {sum(alone_seconds):.2f} s",
        file=sys.stderr,
        flush=True,
    )
    report.add_samples(f"{case.name}_seconds", [together])
    report.add_samples(f"{case.name}_alone_seconds", alone_seconds)
    stats = [result["stats"] for result in shared]
    for row, key, unit in (
        ("leases", "leases", 1),
        ("spilled_mib", "spilled_total_bytes", MIB),
        ("moving_seconds", "moving_seconds", 1),
        ("waited_seconds", "waited_seconds", 1),
        ("held_seconds", "held_seconds", 1),
        ("busy_seconds", "busy_seconds", 1),
    ):
        report.add_samples(f"{case.name}_{row}", [one[key] / unit for one in stats])
    iterations = [second for result in serial for second in result["iteration_seconds"]]
    report.add_samples(f"{case.name}_iteration_seconds", iterations)
    return [r["digest"] for r in shared] == [r["digest"] for r in serial]


def measure(report: Report, *, quick: bool) -> None:
    """Adds the figures of all cases."""
    passes = _calibrated_passes(ITERATION_SECONDS)
    second = round(passes / ITERATION_SECONDS)  # layers a second
    capacity_mib = 512 if quick else 1024
    two_jobs = Case(
        name="two_jobs_095",
        count=2,
        share=0.95,
        capacity_mib=capacity_mib,
        iterations=round((1 if quick else 30) / ITERATION_SECONDS),
        passes=passes,
    )
    cases = [
        two_jobs,
        replace(
            two_jobs,
            name="two_jobs_095_half_busy",
            capacity_mib=capacity_mib // 2,
            iterations=1 if quick else 12,
            passes=second,
            gap_seconds=1.0,
        ),
        replace(
            two_jobs,
            name="four_jobs_06",
            count=4,
            share=0.6,
            iterations=round((0.5 if quick else 12) / ITERATION_SECONDS),
        ),
    ]
    are_equal = [_measure_case(report, case) for case in cases]
    report.figures["bit_equal"] = float(all(are_equal))
    report.notes += [
        "serial is alone on gpushare's allocator; OMP_NUM_THREADS=1, so one core is left to copies",
        "half_busy: 1 s of compute in one iteration, then 1 s of sleep; 0.5 is the best there is",
    ]
