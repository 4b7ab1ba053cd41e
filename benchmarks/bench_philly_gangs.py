"""Gangs of the sizes of Philly on 128 devices: `srtf` against a cluster that does not share.

`exclusive` is one queue, first come, first served, with backfill: each job has its devices alone
until it ends, and a later job starts if enough devices are idle now. No devices are reserved for a
job that waits for more.

For each of four virtual clusters, and each load L in percent: `VC_L_exclusive_over_X`, the average
completion time without sharing over that under policy X; `VC_L_bound_over_X`, the least average
that any schedule could have over that under X; `VC_L_worst_wait_X_hours`, the longest that a job
waited; `VC_L_p99_slowdown_X`, the 99th percentile of a job's completion time over the time that it
takes alone.

Virtual time, so no machine's speed is in the figures; one sample for each seed.
"""

from __future__ import annotations

from benchmarks.report import Report
from gpushare.simulate import clusters, generate, runs
from gpushare.simulate.trace import to_csv

CLUSTERS = ("philly-ee9e8c", "philly-11cb48", "philly-b436b2", "philly-6c71a0")
POLICIES = ("exclusive", "srtf")
DEVICES = 128
JOBS = 5000
LOADS = (1.0, 1.5)
"""The gain depends mostly on the load: where jobs hardly wait there is nothing to gain."""
SEEDS = 3
# Jobs take hours, so turns take minutes. The host tier has room for all jobs that wait.
MACHINE = {
    "capacity": "16GiB",
    "min_quantum": "600s",
    "max_wait": "3600s",
    "host_budget": "1TiB",
    "devices": str(DEVICES),
}


def run(*, quick: bool) -> Report:
    """Three seeds of each virtual cluster and load, under each policy."""
    report = Report(name="philly_gangs")
    for cluster in CLUSTERS:
        report.notes.append(clusters.CLUSTERS[cluster].source)
        for load in LOADS:
            prefix = f"{cluster.partition('-')[2]}_{load:.0%}".removesuffix("%")
            samples: dict[str, list[float]] = {}
            for seed in range(1 if quick else SEEDS):
                jobs = 100 if quick else JOBS
                made = generate.generate(cluster, jobs=jobs, seed=seed, devices=DEVICES, load=load)
                for name, value in _figures(runs.run(to_csv(made), POLICIES, MACHINE)).items():
                    samples.setdefault(f"{prefix}_{name}", []).append(value)
            for name, values in samples.items():
                report.figures[name] = report.add_samples(name, values)
    report.notes.append(
        f"{JOBS} jobs on {DEVICES} devices. exclusive: backfill without reservations"
    )
    return report


def _figures(reports: list[dict[str, object]]) -> dict[str, float]:
    found: dict[str, float] = {}
    compared = runs.ratios(reports)
    for each in reports:
        policy = each["policy"]
        if each["num_finished"] != each["num_jobs"]:
            raise RuntimeError(f"not all jobs have ended under {policy}")
        bound = runs.bound_over(each)
        over = compared[policy]["average"]
        assert bound is not None  # all have ended
        assert over is not None
        if policy != POLICIES[0]:
            found[f"{POLICIES[0]}_over_{policy}"] = over
        found[f"bound_over_{policy}"] = bound
        found[f"worst_wait_{policy}_hours"] = each["wait_seconds"]["worst"] / 3600
        found[f"p99_slowdown_{policy}"] = each["slowdown"]["p99"]
    return found
