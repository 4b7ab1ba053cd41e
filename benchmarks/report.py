"""The result of a benchmark: figures, samples, and the JSON that all benchmarks share."""

from __future__ import annotations

import math
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_SAMPLES = 200
"""Of each kind in the JSON; figures are made of all."""


@dataclass(kw_only=True)
class Report:
    """What a benchmark found; `figures` are what it is about, `samples` what they come from."""

    name: str
    """The benchmark's name, as on the command line."""
    figures: dict[str, float | None] = field(default_factory=dict)
    """Ratios and, where the name ends in a unit, absolute values; None: see the notes."""
    samples: dict[str, list[float]] = field(default_factory=dict)
    """Single measurements behind the figures; seconds unless the name says otherwise."""
    notes: list[str] = field(default_factory=list)
    """Sentences a reader of the figures must know."""

    def add_samples(self, name: str, values: Sequence[float]) -> float:
        """Keeps the values; returns their median."""
        self.samples[name] = [float(value) for value in values]
        return statistics.median(values)

    def _kept_samples(self) -> dict[str, list[float]]:
        """Of many samples every n-th, in the order they were taken."""
        return {
            name: values[:: max(1, math.ceil(len(values) / MAX_SAMPLES))]
            for name, values in self.samples.items()
        }

    def to_json(self) -> dict[str, Any]:
        """The shape that every benchmark writes."""
        import torch

        return {
            "schema_version": 1,
            "name": self.name,
            "command": f"python -m benchmarks.run {' '.join(sys.argv[1:])}",
            "machine": {
                "cpu": _cpu_name(),
                "cores": os.cpu_count(),
                "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
                "kernel": platform.release(),
            },
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
            "figures": self.figures,
            "samples": self._kept_samples(),
        }

    def render(self) -> str:
        """Figures with median and spread of the samples behind them, as text."""
        lines = [f"{self.name}"]
        lines += [
            f"  {name:<34} {format_figure(value):>10}" for name, value in self.figures.items()
        ]
        for name, values in self.samples.items():
            low, high = min(values), max(values)
            lines.append(
                f"    {name:<32} median {statistics.median(values):.6g} "
                f"({low:.6g} to {high:.6g}, n {len(values)})"
            )
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def format_figure(value: float | None) -> str:
    """A figure as text."""
    return "-" if value is None else f"{value:.4f}"


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
