"""Compares a step with cuDNN's convolutions in bf16, registered over stock, as `alone` does."""

from __future__ import annotations

from benchmarks.device.bench_alone import measure_ratio
from benchmarks.device.machine import size
from benchmarks.report import Report


def run(*, quick: bool) -> Report:
    """Measures the ratio, in about half a minute."""
    report = Report(name="mixed")
    rounds = 1 if quick else size(10, 1)
    ratio, of_equals = measure_ratio(report, "mixed", size(15, 2), rounds)
    report.figures = {"over_stock": ratio, "stock_over_stock": of_equals}
    return report
