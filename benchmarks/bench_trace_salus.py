"""The workload of the Salus paper: 100 jobs of its models on one device of its size.

With jobs of 1, 5 and 10 minutes, and (`spread_`) with lengths that differ as much as those of a
cluster's jobs do: how much the policy matters depends on that more than on anything else.
"""

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
    paper={"exclusive_over_srtf": 3.19},
)
SPREAD = SETTING._replace(cluster="spread", paper={})


def run(*, quick: bool) -> Report:
    """Eleven seeds under each policy, of each trace."""
    report = compare(SETTING, quick=quick)
    spread = compare(SPREAD, quick=quick)
    for name, value in spread.figures.items():
        report.figures[f"spread_{name}"] = value
        report.add_samples(f"spread_{name}", spread.samples[name])
    report.notes.append(f"spread_: {spread.notes[0]}")
    return report
