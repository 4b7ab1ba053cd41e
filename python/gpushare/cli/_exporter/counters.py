"""Keeps the counters of a job from going back while it lives.

Prometheus takes a counter that went back for one that began anew, and counts all of it a second
time. A coordinator's figures do go back a little: the time of a turn counts up to now, and later up
to the moment at which the job was found to be suspended. What a job counts itself is missing while
the coordinator has no connection to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpushare.cli._exporter.metrics import FROM_PAGE, STATES_WITHOUT_PAGE

if TYPE_CHECKING:
    from gpushare.cli._exporter.rows import JobKey


class JobCounters:
    """The highest value of each counter of each job that there is; of one thread at a time."""

    def __init__(self) -> None:
        """Knows no job."""
        self._highest: dict[JobKey, dict[tuple[str, str], float]] = {}

    def next_value(
        self, job: JobKey, counter: tuple[str, str], value: float, state: str
    ) -> float | None:
        """Returns what to say of a counter now.

        Args:
            job: Whose.
            counter: The metric's name, and the value of its own label.
            value: What the report says.
            state: The job's.

        Returns:
            A value that is not lower than the last one; None while it is not known.
        """
        highest = self._highest.setdefault(job, {})
        if state in STATES_WITHOUT_PAGE and counter[0] in FROM_PAGE:
            return highest.get(counter)
        highest[counter] = max(value, highest.get(counter, value))
        return highest[counter]

    def forget_others(self, device: str, jobs: set[JobKey]) -> None:
        """Forgets the jobs of a device that are not among these: they have ended."""
        for job in list(self._highest):
            if job.device == device and job not in jobs:
                del self._highest[job]
