"""What jobs that do not fit together move in a round, against the least and least-recently-used."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.least_moves import Turns, fewest_spilled, spilled_least_recently_used
from benchmarks.memory_job import LAYER_MIB, MIB
from benchmarks.processes import outcomes_together, private_coordinator

if TYPE_CHECKING:
    from benchmarks.report import Report

CASES = ((2, 1.1), (3, 1.5), (8, 3.0))
"""Jobs, and the bytes they hold at their boundaries over the capacity."""
EPHEMERAL_MIB = 32
WARM_UP_TURNS = 4
"""Of each job: the first build its model, the next teach the coordinator its sizes."""
LAST_TURNS = 2
"""Of each job: others may have ended."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A run's steady state."""

    turns: Turns
    num_rounds: float
    """In which every job had one turn on the mean."""
    spilled_bytes: float
    """A round."""
    restored_bytes: float
    """A round."""


def _run_jobs(count: int, live_mib: int, capacity_mib: int, seconds: float) -> list[dict[str, Any]]:
    settings = {
        "capacity": f"{capacity_mib}MiB",
        "policy": "rr",
        "min_quantum": "0",
        "max_wait": "0.2s",
        "switch_loss": "0.5",
    }
    sizes = ["--live-mib", str(live_mib), "--ephemeral-mib", str(EPHEMERAL_MIB)]
    with private_coordinator(**settings) as env:
        jobs = [[*sizes, "--seconds", str(seconds), "--seed", str(seed)] for seed in range(count)]
        return outcomes_together(jobs, env, "benchmarks.memory_job")


def _cycle(order: list[int]) -> list[int]:
    """The shortest cycle that the order repeats, or all of it."""
    for length in range(1, len(order) // 2 + 1):
        if all(order[i] == order[i + length] for i in range(len(order) - length)):
            return order[:length]
    return order


def _steady(results: list[dict[str, Any]], capacity_mib: int) -> Seen:
    kept = [result["turns"][WARM_UP_TURNS:-LAST_TURNS] for result in results]
    # Each job's counters over its own whole turns: from one lease's first iteration to a later's.
    num_turns = sum(len(turns) - 1 for turns in kept)
    spilled = sum(turns[-1][1] - turns[0][1] for turns in kept)
    restored = sum(turns[-1][2] - turns[0][2] for turns in kept)
    num_rounds = num_turns / len(results)
    order = [job for _, job in sorted((t[0], job) for job, turns in enumerate(kept) for t in turns)]
    live = [result["live_bytes"] for result in results]
    turns = Turns(
        capacity=capacity_mib * MIB,
        live=live,
        need=[size + EPHEMERAL_MIB * MIB for size in live],
        order=_cycle(order),
    )
    return Seen(
        turns=turns,
        num_rounds=num_rounds,
        spilled_bytes=spilled / num_rounds,
        restored_bytes=restored / num_rounds,
    )


def _ephemeral_mib(result: dict[str, Any]) -> float:
    """As the job's allocator saw it: what the least takes for granted."""
    return float(result["stats"]["peak_backed_bytes"] - result["live_bytes"]) / MIB


def _outside_mib(result: dict[str, Any]) -> float:
    return float(result["stats"]["outside_bytes"]) / MIB


def measure(report: Report, *, quick: bool) -> None:
    """Adds the figures of all cases."""
    for count, over_capacity in CASES:
        name = f"{count}_{over_capacity:g}"
        capacity_mib = 256 if quick else 768
        layers = round(capacity_mib * over_capacity / count / LAYER_MIB)
        seconds = 2.0 + 0.5 * count if quick else 4.0 + 3.0 * count
        results = _run_jobs(count, layers * LAYER_MIB, capacity_mib, seconds)
        seen = _steady(results, capacity_mib)
        per_round = count / len(seen.turns.order)
        least = fewest_spilled(seen.turns) * per_round
        lru = spilled_least_recently_used(seen.turns) * per_round
        report.figures[f"moved_over_least_{name}"] = seen.spilled_bytes / least
        report.figures[f"lru_over_least_{name}"] = lru / least
        mebibytes = [seen.spilled_bytes / MIB, seen.restored_bytes / MIB, least / MIB, lru / MIB]
        print(f"  {name} spilled, restored, least, lru: {mebibytes} MiB", file=sys.stderr)
        for row, value in zip(("spilled", "restored", "least", "lru"), mebibytes, strict=True):
            report.add_samples(f"{name}_{row}_mib_a_round", [value])
        report.add_samples(f"{name}_rounds", [seen.num_rounds])
        report.add_samples(f"{name}_cycle_turns", [float(len(seen.turns.order))])
        report.add_samples(f"{name}_ephemeral_mib", [_ephemeral_mib(r) for r in results])
        report.add_samples(f"{name}_outside_mib", [_outside_mib(r) for r in results])
    report.notes += [
        "moved and least are spilled bytes a round; what is restored is equal but for the ends",
        f"a job needs its live bytes and {EPHEMERAL_MIB} MiB to run; least is exact for these sizes"
        " and the order of turns seen, in fractions of chunks, and lru takes only what is missing",
    ]
