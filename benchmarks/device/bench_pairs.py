"""Times a block that is taken from the cache of torch's CUDA allocator and given back.

gpushare supplies segments and has no part in that, so the ratio to stock torch should be 1. Two
processes take rounds in turn; the figure is the median of the ratios of neighbours.
"""

from __future__ import annotations

from benchmarks.device.machine import device
from benchmarks.device.training import Trainer
from benchmarks.processes import private_coordinator
from benchmarks.report import Report

SIZES = {"1_kib": 1 << 10, "4_mib": 4 << 20}
PAIRS = 20_000


def run(*, quick: bool) -> Report:
    """Measures both sizes, in a few seconds."""
    report = Report(name="pairs")
    with (
        device() as env,
        private_coordinator(require="1") as gpushare_env,
        Trainer("--shared", env=env | gpushare_env) as shared,
        Trainer(env=env | {"GPUSHARE_DISABLE": "1"}) as stock,
    ):
        for job in (shared, stock):
            job.wait_ready()
        for name, size in SIZES.items():
            sides: dict[bool, list[float]] = {True: [], False: []}
            for turn in range(4 if quick else 40):
                is_shared = turn % 2 == (turn // 2) % 2  # on off off on: a drift cancels
                job = shared if is_shared else stock
                sides[is_shared].append(job.take_and_give_back(PAIRS, size) / PAIRS)
            for is_shared, side in ((True, "registered"), (False, "stock")):
                report.add_samples(f"{name}_{side}_pair_seconds", sides[is_shared])
            ratios = [a / b for a, b in zip(sides[True], sides[False], strict=True)]
            report.figures[f"{name}_over_stock"] = report.add_samples(f"{name}_over_stock", ratios)
    return report
