"""The workload of the Salus paper: 100 jobs of its models on one device of its size.

With jobs of 1, 5 and 10 minutes, and (`spread_`) with lengths that differ as much as those of a
cluster's jobs do: how much the policy matters depends on that more than on anything else. With
those that the paper's own averages allow (`fitted_`) there is also what `srtf` reaches where no job
says its length: `learned_over_bound`, as `benchmarks.learned` describes.

`short_bound_over_srtf` and `short_bound_over_fifo`: 10,000 jobs of 0.1 to 2 s that come faster than
they can be served.

`lanes_makespan_over_fifo`: the time until all jobs have ended under `srtf+pack`, over that under
`fifo`. `fifo_over_lanes`: average completion under `fifo` over that under `srtf+pack`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks import learned
from benchmarks.traces import Setting, compare, seeds, trace_of
from gpushare.simulate import runs
from gpushare.simulate.trace import to_csv

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
# This trace compares orders, so the device is large enough for all its jobs.
SHORT = SETTING._replace(
    cluster="short", jobs=10_000, seeds=3, machine={"capacity": "100TB"}, paper={}
)


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
    for policy in ("srtf", "fifo"):
        name = f"short_bound_over_{policy}"
        values = [
            runs.bound_over(_reports(SHORT, seed, [policy], quick=quick)[0]) or 0.0
            for seed in range(seeds(SHORT, quick=quick))
        ]
        report.figures[name] = report.add_samples(name, values)
    for prefix, setting in (("", SETTING), ("fitted_", FITTED)):
        _add_lanes(report, prefix, setting, quick=quick)
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


def _add_lanes(report: Report, prefix: str, setting: Setting, *, quick: bool) -> None:
    makespans, averages = [], []
    for seed in range(seeds(setting, quick=quick)):
        fifo, lanes = _reports(setting, seed, ["fifo", "srtf+pack"], quick=quick)
        makespans.append(lanes["makespan_seconds"] / fifo["makespan_seconds"])
        averages.append(
            fifo["completion_seconds"]["average"] / lanes["completion_seconds"]["average"]
        )
    for name, values in (("lanes_makespan_over_fifo", makespans), ("fifo_over_lanes", averages)):
        report.figures[prefix + name] = report.add_samples(prefix + name, values)


def _reports(
    setting: Setting, seed: int, policies: list[str], *, quick: bool
) -> list[dict[str, Any]]:
    made = to_csv(trace_of(setting, seed, quick=quick))
    return runs.run(made, policies, {"interference": "1", **setting.machine})
