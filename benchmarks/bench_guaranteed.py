"""A guaranteed job with gaps beside two opportunistic ones, under the policy `priority`.

Of the guaranteed job: how much longer it takes than alone, and how much of the time that it was
away the opportunistic jobs spent in iterations. Alone and beside others in turn, in one run. Gaps
are periodic (100, 200, 500 ms), and once exponential with a mean of 100 ms.
"""

from __future__ import annotations

import itertools
import statistics
from contextlib import ExitStack
from typing import Any

from benchmarks.paced_job import overlap, products_of
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

BUSY_SECONDS = 0.1
"""Of the guaranteed job's iterations."""
GAPS = {"100ms": (0.1, False), "200ms": (0.2, False), "500ms": (0.5, False), "bursty": (0.1, True)}
PART = 25
"""An opportunistic iteration is this part of a gap."""
SECONDS = 12.0
"""Of a run, about."""

Intervals = list[list[float]]


def _job(stack: ExitStack, env: dict[str, str], *arguments: str) -> JobProcess:
    process = JobProcess(*arguments, env=env, module="benchmarks.paced_job")
    return stack.enter_context(process)


def _run(gap: float, *, bursty: bool, products: int, iterations: int, others: int) -> Any:
    """The guaranteed job's iterations, and those of the others."""
    with private_coordinator(policy="priority") as env, ExitStack() as stack:
        flags = ["--bursty"] if bursty else []
        first = _job(
            stack, env, "--name", "serve", "--priority", "guaranteed", "--products", str(products),
            "--gap", str(gap), "--iterations", str(iterations), *flags,
        )  # fmt: skip
        per_iteration = max(1, round(products * gap / PART / BUSY_SECONDS))
        rest = [
            _job(
                stack, env, "--name", f"train{number}", "--priority", "opportunistic",
                "--products", str(per_iteration),
            )
            for number in range(others)
        ]  # fmt: skip
        for job in (first, *rest):
            job.wait_ready()
        for job in (*rest, first):
            job.go()
        seen: Intervals = first.outcome()["iterations"]
        for job in rest:
            job.go()
        return seen, [job.outcome()["iterations"] for job in rest]


def _seconds(seen: Intervals) -> float:
    return seen[-1][1] - seen[0][0]


def idle_used(seen: Intervals, others: list[Intervals]) -> float:
    """Of the time between the first job's iterations, the part in the others' iterations."""
    gaps = [(before[1], after[0]) for before, after in itertools.pairwise(seen)]
    iterations = itertools.chain.from_iterable(others)
    used = sum(overlap(each, gap) for each in iterations for gap in gaps)
    return used / sum(until - since for since, until in gaps)


def run(*, quick: bool) -> Report:
    """3 rounds of each kind of gap, alone and beside two."""
    report = Report(name="guaranteed")
    products = products_of(BUSY_SECONDS)
    slowdowns: dict[str, float] = {}
    used: dict[str, float] = {}
    for name, (gap, bursty) in GAPS.items():
        iterations = max(8, round((4.0 if quick else SECONDS) / (gap + BUSY_SECONDS)))
        ratios = []
        parts = []
        for _ in range(1 if quick else 3):
            kind = {"bursty": bursty, "products": products, "iterations": iterations}
            alone, _nobody = _run(gap, others=0, **kind)
            beside, others = _run(gap, others=2, **kind)
            ratios.append(_seconds(beside) / _seconds(alone))
            parts.append(idle_used(beside, others))
        slowdowns[name] = report.add_samples(f"slowdown_{name}", ratios)
        used[name] = report.add_samples(f"idle_used_{name}", parts)
    periodic = [name for name in GAPS if name != "bursty"]
    report.figures = {
        "slowdown": statistics.median(slowdowns[name] for name in periodic),
        "idle_used": statistics.median(used[name] for name in periodic),
        "slowdown_bursty": slowdowns["bursty"],
        "idle_used_bursty": used["bursty"],
    }
    report.notes.append(
        "slowdown and idle_used: the median of the three periodic kinds; the samples have each"
    )
    return report
