"""A trace as rows, written in the form that the simulator reads (docs/simulator.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

HEADER = (
    "name,user,submit_s,iterations,iteration_s,persistent_mib,peak_mib,utilisation,gap_s,"
    "model,says_length,gpus"
)


class TraceJob(NamedTuple):
    """One row."""

    name: str
    user: str
    submit_seconds: float
    iterations: int
    iteration_seconds: float
    persistent_mib: int
    """Memory that outlives an iteration."""
    peak_mib: int
    """Most memory in an iteration, what outlives it included."""
    utilisation: float = 1.0
    """The part of the device that it uses while it runs alone."""
    gap_seconds: float = 0.0
    """From an iteration to the next, in which the device is not used."""
    model: str = ""
    """Jobs of one user with the same model are remembered for each other; "": not remembered."""
    says_length: bool = True
    """Whether it tells the coordinator how many iterations it will run."""
    gpus: int = 1
    """Devices; with several it is a gang, and all other figures are of each of its ranks."""

    @property
    def seconds(self) -> float:
        """How long it runs alone."""
        return self.iterations * (self.iteration_seconds + self.gap_seconds)


def to_csv(jobs: Iterable[TraceJob], comment: str = "") -> str:
    """Returns the trace as text, each line of the comment above it."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines.append(HEADER)
    lines += [
        f"{job.name},{job.user},{job.submit_seconds:.3f},{job.iterations},"
        f"{job.iteration_seconds:.6f},{job.persistent_mib},{job.peak_mib},"
        f"{job.utilisation:.3f},{job.gap_seconds:.6f},{job.model},{int(job.says_length)},{job.gpus}"
        for job in jobs
    ]
    return "\n".join(lines) + "\n"
