"""What it saves that optimizer state follows a lease.

Two jobs of 0.95 of the capacity each take turns of an iteration or two, with and without waiting
for all of their memory.
"""

from __future__ import annotations

import statistics
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.optimizer_job import LAYER_MIB
from benchmarks.processes import outcomes_together, private_coordinator

if TYPE_CHECKING:
    from benchmarks.report import Report

SHARE = 0.95
GRADIENT_MIB = 4
"""Of a layer."""
ROUNDS = 3
TURNS = {"policy": "rr", "min_quantum": "0", "max_wait": "0.1s", "switch_loss": "0.5"}


def _run(*arguments: str, capacity_mib: int, count: int) -> list[dict[str, Any]]:
    with private_coordinator(capacity=f"{capacity_mib}MiB", **TURNS) as env:
        jobs = [[*arguments, "--seed", str(seed)] for seed in range(count)]
        return outcomes_together(jobs, env, "benchmarks.optimizer_job")


def measure(report: Report, *, quick: bool) -> None:
    """Adds `late_over_whole`: the time of both jobs over that with marked iterations."""
    capacity_mib = 512 if quick else 1024
    layers = int(SHARE * capacity_mib) // (LAYER_MIB + GRADIENT_MIB)
    iterations = 4 if quick else 16
    asked = ("--layers", str(layers), "--iterations", str(iterations))
    seconds: dict[str, list[float]] = {"late": [], "whole": []}
    digests = set()
    leases = 0
    for _ in range(1 if quick else ROUNDS):
        for name, flags in (("late", ()), ("whole", ("--marked",))):
            results = _run(*asked, *flags, capacity_mib=capacity_mib, count=2)
            began = min(result["started"] for result in results)
            seconds[name].append(max(result["ended"] for result in results) - began)
            digests.add(tuple(result["digest"] for result in results))
            leases += sum(result["leases"] for result in results)
    for name, all_seconds in seconds.items():
        report.add_samples(f"optimizer_{name}_seconds", all_seconds)
    ratios = [a / b for a, b in zip(seconds["late"], seconds["whole"], strict=True)]
    report.figures["late_over_whole"] = statistics.median(ratios)
    report.figures["late_bit_equal"] = float(len(digests) == 1)
    print(f"  optimizer {seconds}, {leases} leases", file=sys.stderr, flush=True)
    report.notes.append(
        "late: hooks find the iterations, so optimizer state follows the lease; whole: marked ones"
        f" wait for all memory; {leases} leases in all runs"
    )
