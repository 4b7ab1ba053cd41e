"""The goals that the figures of the device benchmarks should reach."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.device import machine


@dataclass(frozen=True)
class Goal:
    """A bound on a figure."""

    bound: float
    is_upper: bool

    @property
    def text(self) -> str:
        """The goal as text, such as "<= 1.003"."""
        return f"{'<=' if self.is_upper else '>='} {self.bound:g}"

    def verdict(self, value: float | None) -> str:
        """Says whether a figure reaches the goal. No figure of the fake device means anything."""
        if machine.is_fake():
            return "not judged on the fake device"
        if value is None:
            return "not measured"
        is_met = value <= self.bound if self.is_upper else value >= self.bound
        return "met" if is_met else "MISSED"


KNOWN = {
    ("alone", "mlp_over_stock"): Goal(1.003, True),
    ("alone", "transformer_over_stock"): Goal(1.003, True),
    ("mixed", "over_stock"): Goal(1.003, True),
    ("bandwidth", "spill_over_pinned_copy"): Goal(0.9, False),
    ("bandwidth", "restore_over_pinned_copy"): Goal(0.9, False),
    ("bandwidth", "both_over_one"): Goal(1.6, False),
    ("two_jobs", "over_serial"): Goal(1.02, True),
    ("inference", "added_ms"): Goal(5.0, True),
}
"""All goals, by benchmark and figure."""


def of(benchmark: str, figure: str) -> Goal | None:
    """Returns the goal of a figure, if it has one."""
    return KNOWN.get((benchmark, figure))
