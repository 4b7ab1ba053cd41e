"""The workload of the Salus paper: 100 jobs of its models on one device of its size.

With jobs of 1, 5 and 10 minutes, and (`spread_`) with lengths that differ as much as those of a
cluster's jobs do: how much the policy matters depends on that more than on anything else. With
those that the paper's own averages allow (`fitted_`) there is also what `srtf` reaches where no job
says its length: `learned_over_bound`, as `benchmarks.learned` describes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import learned
from benchmarks.traces import Setting, compare, seeds, trace_of

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
FITTED = SETTING._replace(cluster="fitted", load=12.5)


def run(*, quick: bool) -> Report:
    """Eleven seeds under each policy, of each trace."""
    report = compare(SETTING, quick=quick)
    for prefix, setting in (("spread", SPREAD), ("fitted", FITTED)):
        other = compare(setting, quick=quick)
        for name, value in other.figures.items():
            report.figures[f"{prefix}_{name}"] = value
        for name, values in other.samples.items():
            report.add_samples(f"{prefix}_{name}", values)
        report.notes.append(f"{prefix}_: {other.notes[0]}")
    bounds = [
        learned.bound_over_srtf(trace_of(FITTED, seed, quick=quick), seed, FITTED.machine)
        for seed in range(seeds(FITTED, quick=quick))
    ]
    report.figures["learned_over_bound"] = report.add_samples("learned_over_bound", bounds)
    report.notes.append(
        f"learned: as fitted_, and no job says its length; {learned.RECURRING:.0%} are of a model "
        f"that ran once before, as long but for a log-normal factor of sigma {learned.ERROR}"
    )
    return report
