"""The workload of the Salus paper: 100 jobs of its models on one device of its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.traces import Setting, compare

if TYPE_CHECKING:
    from benchmarks.report import Report

SETTING = Setting(
    cluster="salus",
    jobs=100,
    devices=1,
    load=1.2,
    seeds=11,
    # What its scripts take to be usable of a 16 GB device.
    machine={"capacity": "14GB"},
    # FIFO over SRTF, average completion time: the abstract (MLSys 2020).
    paper={"fifo_over_srtf": 3.19},
)


def run(*, quick: bool) -> Report:
    """Eleven seeds under each policy."""
    return compare(SETTING, quick=quick)
