"""What a scene of the demo is and what came out of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpushare.demo.timeline import Timeline


@dataclass
class JobResult:
    """One job of a scene."""

    name: str
    """The workload."""
    losses: list[str] | None = None
    """A hash of each loss; None if the job did not finish."""
    parameters_hash: str | None = None
    """Of the parameters at the end; None if the job did not finish."""
    spans_ns: list[tuple[int, int]] = field(default_factory=list)
    """Begin and end of each iteration."""
    stats: dict[str, Any] = field(default_factory=dict)
    """The job's own counters; empty on torch's allocator."""
    out_of_memory: str | None = None
    """What the error said."""

    @property
    def is_finished(self) -> bool:
        """Whether it trained to its end."""
        return self.losses is not None

    def has_same_bits(self, other: JobResult) -> bool:
        """Whether all losses and parameters equal another run's."""
        return (
            self.is_finished
            and self.losses == other.losses
            and self.parameters_hash == other.parameters_hash
        )


@dataclass
class SceneResult:
    """One scene, run."""

    title: str
    """As the table says it."""
    jobs: list[JobResult]
    """In the order of the workloads."""
    seconds: float | None
    """From the go to the last iteration's end; None if the scene is not timed or did not finish."""
    peak_bytes: int
    """Device memory of all jobs together."""
    num_samples: int
    """How often memory was looked at."""
    is_stopped: bool = False
    """Ended by us: it took too long, or showed what it had to."""
    timeline: Timeline | None = None
    """Turns, where jobs take turns."""
    notes: list[str] = field(default_factory=list)
    """What the table cannot say."""

    def job(self, name: str) -> JobResult:
        """Returns a job's result by its workload's name."""
        return next(job for job in self.jobs if job.name == name)

    @property
    def is_managed(self) -> bool:
        """Whether its jobs took turns."""
        return any(job.stats.get("leases") for job in self.jobs)

    @property
    def is_late(self) -> bool:
        """Whether it was ended for taking too long."""
        return self.is_stopped and not any(job.out_of_memory for job in self.jobs)

    def total(self, counter: str) -> int:
        """Adds up one of the jobs' own counters."""
        return sum(int(job.stats.get(counter, 0)) for job in self.jobs)

    def verdict(self, reference: SceneResult) -> str:
        """Says how results compare with another scene's, in a word or two."""
        if any(job.out_of_memory for job in self.jobs):
            return "out of memory"
        if self.is_late:
            return "stopped at 2 x"
        if not all(job.is_finished for job in self.jobs):
            return "not finished"
        if self is reference:
            return "reference"
        return "identical" if self.is_identical_to(reference) else "different bits"

    def is_identical_to(self, reference: SceneResult) -> bool:
        """Whether each job has the same bits as in another scene."""
        return all(job.has_same_bits(reference.job(job.name)) for job in self.jobs)
