"""Makes traces: the models of the Salus paper with the durations and sizes of known clusters.

Each cluster says how long its jobs run and on how many GPUs, and where that is from
(`gpushare.simulate.clusters`). Common to all, and assumed: a job's model is any of `MODELS`, so
memory does not depend on durations; jobs arrive at random (a Poisson process, given how many they
are), as fast as makes the devices' load what was asked for; a few users submit most of the jobs (by
Zipf's law).
"""

from __future__ import annotations

import math
import random

from gpushare.simulate.clusters import CLUSTERS, Cluster
from gpushare.simulate.models import MODELS
from gpushare.simulate.trace import TraceJob

DEFAULT_LOAD = 1.2
_JOBS_A_USER = 20


def generate(
    cluster: str,
    *,
    jobs: int,
    seed: int = 0,
    devices: int = 1,
    load: float = DEFAULT_LOAD,
    most_gpus: int | None = None,
) -> list[TraceJob]:
    """Makes a trace; the same for the same arguments.

    Args:
        cluster: One of `CLUSTERS`.
        jobs: How many.
        seed: Of the random numbers.
        devices: For how many devices `load` is meant.
        load: The jobs' time over the devices' time while jobs arrive; above 1 they queue up.
        most_gpus: The most GPUs of a job; a larger job gets so many. None: as many as `devices`.

    Raises:
        ValueError: One of them is out of its range.
    """
    if cluster not in CLUSTERS:
        raise ValueError(f"no trace is called {cluster!r}: one of {', '.join(CLUSTERS)}")
    if jobs < 1 or devices < 1 or not 0 < load < math.inf:
        raise ValueError(f"jobs {jobs}, devices {devices}, load {load}: each must be above 0")
    rng = random.Random(seed)
    users = max(1, jobs // _JOBS_A_USER)
    weights = [1 / (rank + 1) for rank in range(users)]
    names = rng.choices([f"user{rank + 1}" for rank in range(users)], weights, k=jobs)
    most = devices if most_gpus is None else min(most_gpus, devices)
    rows = [_job(rng, CLUSTERS[cluster], user, most) for user in names]
    span = sum(row.seconds * row.gpus for row in rows) / (devices * load)
    arrivals = sorted(rng.uniform(0, span) for _ in rows)
    return [
        row._replace(name=f"{row.name}.{number}", submit_seconds=arrival)
        for number, (row, arrival) in enumerate(zip(rows, arrivals, strict=True), start=1)
    ]


def _job(rng: random.Random, cluster: Cluster, user: str, most_gpus: int) -> TraceJob:
    model = rng.choice(MODELS)
    size = cluster.size(rng) if cluster.sizes and most_gpus > 1 else None
    return TraceJob(
        name=model.name,
        user=user,
        submit_seconds=0.0,
        iterations=max(1, round(cluster.seconds_of(rng, size) / model.iteration_seconds)),
        iteration_seconds=model.iteration_seconds,
        persistent_mib=model.persistent_mib,
        peak_mib=model.peak_mib,
        utilisation=model.utilisation,
        gpus=1 if size is None else min(size.gpus, most_gpus),
    )
