"""A step with cuDNN's convolutions in bf16, registered over stock; as `alone`."""

from __future__ import annotations

from benchmarks.device.bench_alone import measure_ratio
from benchmarks.device.machine import size
from benchmarks.report import Report


def run(*, quick: bool) -> Report:
    """About a quarter of a minute."""
    report = Report(name="mixed")
    rounds = 2 if quick else size(20, 2)
    report.figures["over_stock"] = measure_ratio(report, "mixed", size(15, 2), rounds)
    return report
