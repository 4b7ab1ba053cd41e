"""What a flood of another user costs two jobs that take turns, over a process that only computes.

Each flood is one process (``tests/hostile/floods.py``), which takes a core whatever it does with
it. So the other side of the ratio is the same jobs beside a process of the other user that spins.
As root; else the flood is of the same user.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.paced_job import products_of
from benchmarks.processes import JobProcess
from benchmarks.report import Report
from tests.hostile.floods import FLOODS
from tests.hostile.shared_box import SharedBox, StrangerProcess, shared_box

ITERATION_SECONDS = 0.02
RUN_SECONDS = 3.0
"""Of both jobs together, about."""
ROUNDS = 3


def _spin(_path: str) -> None:
    while True:
        pass


def _makespan(box: SharedBox, iterations: int) -> float:
    """Of two jobs that have joined."""
    products = products_of(ITERATION_SECONDS)
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(
                    "--name", f"paced{number}", "--products", str(products), "--gap", "0",
                    "--iterations", str(iterations), env=box.environment(),
                    module="benchmarks.paced_job",
                )
            )
            for number in range(2)
        ]  # fmt: skip
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.go()
        seen = [job.outcome()["iterations"] for job in jobs]
    return float(max(each[-1][1] for each in seen) - min(each[0][0] for each in seen))


def _beside(attack: Callable[[str], object], iterations: int) -> float:
    with shared_box() as box:
        attacker = StrangerProcess(lambda: attack(box.path))
        try:
            return _makespan(box, iterations)
        finally:
            attacker.kill()


def run(*, quick: bool) -> Report:
    """Each flood and the spinning process in turn."""
    report = Report(name="floods")
    iterations = round((0.5 if quick else RUN_SECONDS) / ITERATION_SECONDS / 2)
    for flood in FLOODS:
        ratios = []
        for _ in range(1 if quick else ROUNDS):
            spinning = _beside(_spin, iterations)
            ratios.append(_beside(flood, iterations) / spinning)
        report.add_samples(flood.__name__, ratios)
        report.figures[flood.__name__] = statistics.median(ratios)
    report.figures["worst"] = max(value for value in report.figures.values() if value is not None)
    report.notes.append(
        "makespan of two jobs that take turns beside the flood, over that beside one that spins"
    )
    return report
