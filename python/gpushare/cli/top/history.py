"""What was seen in the last minutes: curves, and how fast each job is now.

A coordinator says how many iterations a job has done. Two looks give the rate between them, which
follows a pause at once; the coordinator's own rate counts from the job's registration.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SPAN_SECONDS = 5.0
"""What one place of a curve stands for."""
MOST_SPANS = 60
RATE_SECONDS = 10.0
"""The least time over which a rate is counted."""
_MOST_RATE_SECONDS = 120.0
_FORGET_SECONDS = 60.0
"""After a coordinator's restart jobs are back sooner than that."""


class JobId(NamedTuple):
    """A job as long as its process lives; its number is another one at another coordinator."""

    device: str
    pid: int


class Means:
    """Means of a value, each over ``SPAN_SECONDS``."""

    def __init__(self) -> None:
        """Knows nothing yet."""
        self._closed: deque[float | None] = deque(maxlen=MOST_SPANS)
        self._span = 0
        self._sum = 0.0
        self._count = 0

    def add(self, at: float, value: float) -> None:
        """Takes a value.

        Args:
            at: Seconds on a monotonic clock, never less than the time before.
            value: Of any unit.
        """
        span = int(at // SPAN_SECONDS)
        if self._count and span > self._span:
            self._closed.append(self._sum / self._count)
            self._closed.extend([None] * min(span - self._span - 1, MOST_SPANS))
            self._sum, self._count = 0.0, 0
        self._span = span
        self._sum += value
        self._count += 1

    def values(self) -> list[float | None]:
        """Returns the means, the newest last; None for a span in which nothing was added."""
        return [*self._closed, self._sum / self._count] if self._count else []


class Rate:
    """Iterations in a second, out of a count that grows."""

    def __init__(self) -> None:
        """Knows nothing yet."""
        self.means = Means()
        self.seen_at = 0.0
        self._counts: deque[tuple[float, int]] = deque()

    def add(self, at: float, count: int) -> None:
        """Takes a count.

        Args:
            at: Seconds on a monotonic clock.
            count: Less than the one before where the job has registered anew.
        """
        counts = self._counts
        if counts and count < counts[-1][1]:
            counts.clear()
        if counts and at <= counts[-1][0]:
            return  # two coordinators say it of one process
        if counts:
            before, old = counts[-1]
            self.means.add(at, (count - old) / (at - before))
        counts.append((at, count))
        while counts[0][0] < at - _MOST_RATE_SECONDS:
            counts.popleft()
        self.seen_at = at

    def recent(self, iteration_seconds: float) -> float | None:
        """Returns the rate of the last 10 s, or of three iterations where that is longer.

        Args:
            iteration_seconds: How long an iteration takes; 0 where it is not known.

        Returns:
            None where there is one count alone.
        """
        counts = self._counts
        if len(counts) < 2:
            return None
        at, count = counts[-1]
        since = at - max(RATE_SECONDS, 3 * iteration_seconds)
        before, old = next(each for each in counts if each[0] >= since)
        if before == at:  # a long time without an answer
            before, old = counts[-2]
        return (count - old) / (at - before)


class History:
    """All that was seen of devices and jobs."""

    def __init__(self) -> None:
        """Knows nothing yet."""
        self.rates: dict[JobId, Rate] = {}
        self.leased: dict[str, Means] = {}
        self.used: dict[str, Means] = {}

    def add(self, at: float, devices: list[dict[str, Any]]) -> None:
        """Takes what coordinators said.

        Args:
            at: Seconds on a monotonic clock.
            devices: Of their reports.
        """
        for device in devices:
            name = device["device"]
            self.leased.setdefault(name, Means()).add(at, device.get("busy", 0.0))
            self.used.setdefault(name, Means()).add(at, used_part(device))
            for key, job in _jobs(device):
                self.rates.setdefault(key, Rate()).add(at, job["iterations"])
        gone = [key for key, rate in self.rates.items() if rate.seen_at < at - _FORGET_SECONDS]
        for key in gone:
            del self.rates[key]


def used_part(device: dict[str, Any]) -> float:
    """Returns the part of a device's capacity that jobs may have backed now."""
    capacity: int = device["capacity_bytes"]
    return max(0, capacity - max(device["free_bytes"], 0)) / capacity if capacity else 0.0


def _jobs(device: dict[str, Any]) -> Iterator[tuple[JobId, dict[str, Any]]]:
    for job in device["jobs"]:
        yield JobId(device["device"], job["pid"]), job
