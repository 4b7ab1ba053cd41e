"""Policies compared on generated traces, with a cluster that does not share and with the best.

`exclusive_over_X`: average completion time where each job has a device to itself, from one queue,
over that under policy X; `p95_...` the same of 95th percentiles. `bound_over_X`: the least average
that any schedule could have over that under X. `worst_wait_X_hours`: of all jobs, the longest time
that one waited.

Virtual time, so no machine's speed is in the figures; one sample for each seed.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.report import Report
from gpushare.simulate import clusters, generate, runs
from gpushare.simulate.trace import TraceJob, to_csv

BASELINE = "exclusive"
POLICIES = ("fifo", "srtf", "rr", "fair", "pack")


class Setting(NamedTuple):
    """One trace, and the devices that it runs on."""

    cluster: str
    jobs: int
    devices: int
    load: float
    seeds: int
    machine: dict[str, str]
    paper: dict[str, float]
    """Figures of the cluster's paper, by the name of ours."""
    most_gpus: int | None = 1
    """Of a job; None: as many as its cluster says."""


def seeds(setting: Setting, *, quick: bool) -> int:
    """Returns how many traces there are."""
    return 1 if quick else setting.seeds


def trace_of(setting: Setting, seed: int, *, quick: bool) -> list[TraceJob]:
    """Returns the trace of one seed."""
    return generate.generate(
        setting.cluster,
        jobs=min(setting.jobs, 50) if quick else setting.jobs,
        seed=seed,
        devices=_devices(setting, quick=quick),
        load=setting.load,
        most_gpus=setting.most_gpus,
    )


def _devices(setting: Setting, *, quick: bool) -> int:
    return min(setting.devices, 5) if quick else setting.devices


def compare(setting: Setting, *, quick: bool) -> Report:
    """Runs the trace once for each seed and policy."""
    report = Report(name=f"trace_{setting.cluster}")
    samples: dict[str, list[float]] = {}
    for seed in range(seeds(setting, quick=quick)):
        for name, value in _ratios(setting, seed, quick=quick).items():
            samples.setdefault(name, []).append(value)
    for name, values in samples.items():
        report.figures[name] = report.add_samples(name, values)
    for name, value in setting.paper.items():
        report.figures[f"paper_{name}"] = value
    report.notes = [
        f"{setting.jobs} jobs on {setting.devices} devices at load {setting.load}: "
        f"{clusters.CLUSTERS[setting.cluster].source}",
        "exclusive: one queue, and one job a device at a time",
    ]
    report.notes.append(
        "pack: jobs side by side use what is left of the device, no more (interference 1); how "
        "much each uses is assumed (gpushare.simulate.models)"
    )
    if setting.most_gpus == 1 and clusters.CLUSTERS[setting.cluster].sizes:
        report.notes.append("each job has one GPU here")
    if setting.paper:
        report.notes.append("paper_: of the paper's own trace, whose durations are not known")
    return report


def _ratios(setting: Setting, seed: int, *, quick: bool) -> dict[str, float]:
    made = trace_of(setting, seed, quick=quick)
    devices = str(_devices(setting, quick=quick))
    machine = {"interference": "1", **setting.machine, "devices": devices}
    reports = runs.run(to_csv(made), [BASELINE, *POLICIES], machine)
    compared = runs.ratios(reports)
    found = {
        f"worst_wait_{report['policy']}_hours": report["wait_seconds"]["worst"] / 3600
        for report in reports
    }
    for policy in POLICIES:
        for prefix, name in (("", "average"), ("p95_", "p95")):
            value = compared[policy][name]
            if value is None:
                raise RuntimeError(f"no job has ended under {policy}, seed {seed}")
            found[f"{prefix}{BASELINE}_over_{policy}"] = value
    for report in reports:
        if report["num_finished"] < report["num_jobs"]:
            raise RuntimeError(f"not all jobs have ended under {report['policy']}, seed {seed}")
        bound = runs.bound_over(report)
        assert bound is not None  # some have ended
        found[f"bound_over_{report['policy']}"] = bound
    return found
