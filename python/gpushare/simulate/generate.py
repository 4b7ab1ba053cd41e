"""Makes traces: the models of the Salus paper with the durations of known clusters.

Each cluster says how long its jobs run, and where that is from. Common to all, and assumed: a
job's model is any of `MODELS`, so sizes do not depend on durations; jobs arrive at random (a
Poisson process, given how many they are), as fast as makes the devices' load what was asked for; a
few users submit most of the jobs (by Zipf's law).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import NamedTuple

from gpushare.simulate.models import MODELS, SECONDS_OF_A_JOB
from gpushare.simulate.trace import TraceJob

DEFAULT_LOAD = 1.2
_JOBS_A_USER = 20
_DAY = 86_400.0


class Cluster(NamedTuple):
    """How long a cluster's jobs run."""

    source: str
    """Where that is from, and what of it is assumed."""
    seconds: Callable[[random.Random], float]


def _log_normal(
    rng: random.Random, *, median: float, sigma: float, least: float, most: float
) -> float:
    return min(max(rng.lognormvariate(math.log(median), sigma), least), most)


def _salus_seconds(rng: random.Random) -> float:
    return SECONDS_OF_A_JOB * rng.choice((1, 5, 10))


def _spread_seconds(rng: random.Random) -> float:
    median = 5 * SECONDS_OF_A_JOB
    return _log_normal(rng, median=median, sigma=ALIBABA_SIGMA, least=10, most=100 * median)


def _fitted_seconds(rng: random.Random) -> float:
    return _log_normal(rng, median=84, sigma=1.4, least=10, most=48 * 60)


# A log-normal distribution with this median and mean: mean = median * exp(sigma^2 / 2).
PHILLY_MEDIAN_SECONDS = 780.0
PHILLY_MEAN_SECONDS = 28_329.0
PHILLY_SIGMA = math.sqrt(2 * math.log(PHILLY_MEAN_SECONDS / PHILLY_MEDIAN_SECONDS))


def _philly_seconds(rng: random.Random) -> float:
    return _log_normal(
        rng, median=PHILLY_MEDIAN_SECONDS, sigma=PHILLY_SIGMA, least=10, most=60 * _DAY
    )


# A log-normal distribution with this median and 90th percentile, which is 1.2816 sigma above it.
ALIBABA_MEDIAN_SECONDS = 1_380.0
ALIBABA_P90_SECONDS = 16_200.0
ALIBABA_SIGMA = math.log(ALIBABA_P90_SECONDS / ALIBABA_MEDIAN_SECONDS) / 1.2816


def _alibaba_seconds(rng: random.Random) -> float:
    return _log_normal(
        rng, median=ALIBABA_MEDIAN_SECONDS, sigma=ALIBABA_SIGMA, least=10, most=30 * _DAY
    )


CLUSTERS = {
    "salus": Cluster(
        "Salus (MLSys 2020): 1-, 5- and 10-minute jobs of its models. Assumed: each equally often",
        _salus_seconds,
    ),
    "fitted": Cluster(
        "durations like those of traces, found by search, whose averages under FIFO, SRTF and fair "
        "sharing are within 9 % of Salus' (MLSys 2020), which has not published its own. They "
        "have a load of 7 to 60: give 12.5. "
        "Log-normal: a median of 84 s, sigma 1.4, at most 48 minutes",
        _fitted_seconds,
    ),
    "spread": Cluster(
        "the models of Salus (MLSys 2020), with jobs that differ in length as those of Alibaba do. "
        "Assumed: log-normal, a median of 5 minutes",
        _spread_seconds,
    ),
    "philly": Cluster(
        "Microsoft's Philly cluster (Jeon et al., USENIX ATC 2019): median 13 min; mean 28,329 s "
        "and at most 60 days (Hu et al., SC 2021, table of traces). "
        "Assumed: log-normal, one GPU a job",
        _philly_seconds,
    ),
    "alibaba": Cluster(
        "Alibaba's PAI cluster (Weng et al., NSDI 2022): median 23 min, 90th percentile 4.5 h. "
        "Assumed: log-normal, at most 30 days, one GPU a job",
        _alibaba_seconds,
    ),
}
"""By the name that the command line has for them."""


def generate(
    cluster: str, *, jobs: int, seed: int = 0, devices: int = 1, load: float = DEFAULT_LOAD
) -> list[TraceJob]:
    """Makes a trace; the same for the same arguments.

    Args:
        cluster: One of `CLUSTERS`.
        jobs: How many.
        seed: Of the random numbers.
        devices: For how many devices `load` is meant.
        load: The jobs' time over the devices' time while jobs arrive; above 1 they queue up.

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
    rows = [_job(rng, CLUSTERS[cluster], user) for user in names]
    span = sum(row.seconds for row in rows) / (devices * load)
    arrivals = sorted(rng.uniform(0, span) for _ in rows)
    return [
        row._replace(name=f"{row.name}.{number}", submit_seconds=arrival)
        for number, (row, arrival) in enumerate(zip(rows, arrivals, strict=True), start=1)
    ]


def _job(rng: random.Random, cluster: Cluster, user: str) -> TraceJob:
    model = rng.choice(MODELS)
    return TraceJob(
        name=model.name,
        user=user,
        submit_seconds=0.0,
        iterations=max(1, round(cluster.seconds(rng) / model.iteration_seconds)),
        iteration_seconds=model.iteration_seconds,
        persistent_mib=model.persistent_mib,
        peak_mib=model.peak_mib,
        utilisation=model.utilisation,
    )
