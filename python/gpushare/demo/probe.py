"""Short serial runs before and after the scenes: is the machine the same, what does a job need?

They run on gpushare's allocator without a coordinator, so that the iterations inside slices can be
compared with the same job alone on the same allocator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpushare.demo.mode import ALLOCATOR
from gpushare.demo.scene_runner import SceneRunner, SceneSetup
from gpushare.demo.timeline import median_iteration_ns

if TYPE_CHECKING:
    from gpushare.demo.scene import SceneResult
    from gpushare.demo.workload import Workload


MOST_DRIFT = 0.10
"""Above this the machine was not the same throughout, and the timings say nothing."""

UNMANAGED = {"GPUSHARE_SOCKET": "none"}
"""gpushare's allocator without turns."""

NUM_PROBE_ITERATIONS = 3
"""Of each job; the first of them is not counted."""


@dataclass(frozen=True)
class Probe:
    """Each job alone, briefly."""

    iteration_ns: dict[str, float]
    """Median length of an iteration, by job."""
    peak_bytes: dict[str, int]
    """Most device memory a job ever had, by job."""
    live_bytes: dict[str, int]
    """Device memory alive between iterations, by job."""

    def drift_to(self, other: Probe) -> float:
        """Returns by which part the slower one of two probes was slower, over all jobs."""
        one, two = sum(self.iteration_ns.values()), sum(other.iteration_ns.values())
        return max(one, two) / min(one, two) - 1


def run_probe(runner: SceneRunner, workloads: Sequence[Workload]) -> Probe:
    """Runs each job for a few iterations, one after the other."""
    shortened = [workload.shortened(NUM_PROBE_ITERATIONS) for workload in workloads]
    setup = SceneSetup("serial probe", ALLOCATOR, UNMANAGED, is_serial=True)
    return read_probe(runner.run(setup, shortened))


def read_probe(result: SceneResult) -> Probe:
    """Takes the figures out of a probe's jobs."""
    stats = {job.name: job.stats for job in result.jobs}
    return Probe(
        iteration_ns={job.name: median_iteration_ns(job.spans_ns) for job in result.jobs},
        peak_bytes={name: int(each["peak_reserved_bytes"]) for name, each in stats.items()},
        live_bytes={name: int(each["live_bytes"]) for name, each in stats.items()},
    )
