"""How long the jobs of known clusters run, and on how many GPUs, with the sources."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import NamedTuple

from gpushare.simulate.models import SECONDS_OF_A_JOB

_DAY = 86_400.0


class Size(NamedTuple):
    """The jobs of a cluster that ask for so many GPUs."""

    gpus: int
    jobs: float
    """How many they are; only the ratio to those of other sizes counts."""
    median_seconds: float = 0.0
    """0: they run as long as jobs of other sizes."""
    mean_seconds: float = 0.0


class Cluster(NamedTuple):
    """How long a cluster's jobs run, and how many GPUs they have."""

    source: str
    """Where that is from, and what of it is assumed."""
    seconds: Callable[[random.Random], float]
    """Draws how long a job runs whose size has no times of its own."""
    sizes: tuple[Size, ...] = ()
    """Without any, each job has one GPU."""

    def size(self, rng: random.Random) -> Size:
        """Draws how many GPUs a job has."""
        return rng.choices(self.sizes, [size.jobs for size in self.sizes])[0]

    def seconds_of(self, rng: random.Random, size: Size | None) -> float:
        """Draws how long a job runs."""
        if size is None or not size.median_seconds:
            return self.seconds(rng)
        spread = max(size.mean_seconds / size.median_seconds, 1.0)
        sigma = math.sqrt(2 * math.log(spread))
        return _log_normal(rng, median=size.median_seconds, sigma=sigma, least=10, most=60 * _DAY)


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


# The sizes that Gavel's generator of jobs draws, "from the Philly distribution".
PHILLY_SIZES = (Size(1, 70), Size(2, 10), Size(4, 15), Size(8, 5))

# Counted in the traces of four of Philly's virtual clusters, as Gavel publishes them: 2,000 jobs
# each, whose steps are turned into times by Gavel's table of steps a second. That table has no
# speeds for more than 8 GPUs: such jobs are taken to run as long as those with 8.
_EE9E8C = (
    Size(1, 975, 34_603, 211_649), Size(2, 47, 40_644, 48_621), Size(4, 321, 22_767, 38_281),
    Size(8, 545, 27_464, 51_131), Size(16, 107, 27_464, 51_131), Size(32, 5, 27_464, 51_131),
)  # fmt: skip
_11CB48 = (
    Size(1, 1559, 11_914, 47_207), Size(2, 81, 31_344, 69_475), Size(4, 257, 16_799, 41_156),
    Size(8, 23, 13_622, 71_641), Size(16, 69, 13_622, 71_641), Size(24, 2, 13_622, 71_641),
    Size(32, 8, 13_622, 71_641), Size(64, 1, 13_622, 71_641),
)  # fmt: skip
_B436B2 = (
    Size(1, 1632, 2_229, 2_508), Size(2, 23, 245_279, 245_279), Size(4, 133, 126_206, 185_270),
    Size(8, 172, 31_815, 106_451), Size(16, 39, 31_815, 106_451), Size(24, 1, 31_815, 106_451),
)  # fmt: skip
_6C71A0 = (
    Size(1, 1798, 12_183, 133_383), Size(2, 6, 7_169, 39_123), Size(4, 41, 7_169, 39_123),
    Size(8, 150, 6_027, 17_125), Size(16, 4, 6_027, 17_125), Size(32, 1, 6_027, 17_125),
)  # fmt: skip


def _virtual_cluster(name: str, sizes: tuple[Size, ...]) -> Cluster:
    return Cluster(
        f"virtual cluster {name} of Microsoft's Philly, as Gavel (OSDI 2020) publishes its trace: "
        "how many jobs have how many GPUs, and the median and mean time of each size. "
        "Assumed: log-normal, at most 60 days; jobs with more than 8 GPUs run as long as with 8",
        _philly_seconds,
        sizes,
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
    "short": Cluster(
        "none: jobs of 0.1 to 2 s, each length equally often, as a server of small jobs has them",
        lambda rng: rng.uniform(0.1, 2.0),
    ),
    "philly": Cluster(
        "Microsoft's Philly cluster (Jeon et al., USENIX ATC 2019): median 13 min; mean 28,329 s "
        "and at most 60 days (Hu et al., SC 2021, table of traces); 1, 2, 4 and 8 GPUs for 70, 10, "
        "15 and 5 % of the jobs (the generator of Gavel, OSDI 2020). "
        "Assumed: log-normal, as long with several GPUs as with one",
        _philly_seconds,
        PHILLY_SIZES,
    ),
    "philly-ee9e8c": _virtual_cluster("ee9e8c", _EE9E8C),
    "philly-11cb48": _virtual_cluster("11cb48", _11CB48),
    "philly-b436b2": _virtual_cluster("b436b2", _B436B2),
    "philly-6c71a0": _virtual_cluster("6c71a0", _6C71A0),
    "alibaba": Cluster(
        "Alibaba's PAI cluster (Weng et al., NSDI 2022): median 23 min, 90th percentile 4.5 h. "
        "Assumed: log-normal, at most 30 days, one GPU a job",
        _alibaba_seconds,
    ),
}
"""By the name that the command line has for them."""
