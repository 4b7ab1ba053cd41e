"""What happened on one device in the last minutes: leases and waits, and where memory was.

A timeline belongs to one life of a coordinator. All times are seconds since its start.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any, NamedTuple

from gpushare.cli.trace.tracks import LEASE, WAIT, DeviceTracks, Event
from gpushare.printable import printable

WINDOW_SECONDS = 300.0
MOST_SLICES = 20_000
"""Of a device: what a coordinator that is asked each second can tell in the window."""
_KINDS = {LEASE: 0, WAIT: 1}


class Entry(NamedTuple):
    """Something that was seen, with the number of the reading that showed it."""

    reading: int
    values: tuple[float, ...]


class Timeline:
    """One device under one coordinator; of one thread at a time."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.now = 0.0
        self._tracks = DeviceTracks()
        self._slices: deque[Entry] = deque(maxlen=MOST_SLICES)
        self._memory: deque[Entry] = deque()
        self._names: dict[int, str] = {}

    def add(self, reading: int, report: dict[str, Any], device: dict[str, Any]) -> None:
        """Takes in what a report says.

        Args:
            reading: The reading's number; it grows.
            report: As a coordinator sent it.
            device: The device's part of it.

        Raises:
            KeyError: The coordinator is of an earlier version, which says less.
        """
        self.now = report["coordinator"]["uptime_seconds"]
        decisions = [
            {**each, "at": self.now - each["seconds_ago"]}
            for each in report["decisions"]
            if each["device"] == device["device"]
        ]
        self._tracks.add(self.now, device, decisions)
        for event in self._tracks.take():
            if event.name in _KINDS:
                self._slices.append(Entry(reading, _slice(event)))
        jobs = device["jobs"]
        shared = sum(lane.get("pool_bytes", 0) for lane in device["lanes"])
        memory = (
            round(self.now, 3),
            sum(job["resident_bytes"] for job in jobs) + shared,
            sum(job["spilled_bytes"] for job in jobs),
            max(device["free_bytes"], 0),
        )
        self._memory.append(Entry(reading, memory))
        self._names.update({job["job"]: job["name"] for job in jobs})
        self._forget({job["job"] for job in jobs})

    def since(self, reading: int) -> dict[str, Any]:
        """Returns what later readings have shown.

        Args:
            reading: The last one that is known; 0 for none, and all of the window comes.

        Returns:
            ``slices`` of [job, 0 for a lease or 1 for a wait, start, length], ``under_way`` of the
            same for those that have not ended, ``memory`` of [time, resident, spilled, free] in
            bytes, and with the whole window ``names`` of its jobs.
        """
        found: dict[str, Any] = {
            "now": round(self.now, 3),
            "slices": _later(self._slices, reading),
            "under_way": [_slice(event) for event in self._tracks.under_way()],
            "memory": _later(self._memory, reading),
        }
        if not reading:
            found["names"] = {number: printable(name) for number, name in self._names.items()}
        return found

    def _forget(self, alive: set[int]) -> None:
        """Forgets what the window does not show."""
        oldest = self.now - WINDOW_SECONDS
        while self._memory[0].values[0] < oldest:
            self._memory.popleft()
        # Slices come as they end, so an early end comes early.
        while self._slices and sum(self._slices[0].values[2:]) < oldest:
            self._slices.popleft()
        if len(self._names) > len(alive):
            shown = alive | {int(each.values[0]) for each in self._slices}
            self._names = {job: name for job, name in self._names.items() if job in shown}


def _slice(event: Event) -> tuple[float, ...]:
    return (event.track, _KINDS[event.name], round(event.at, 4), round(event.seconds, 4))


def _later(entries: deque[Entry], reading: int) -> list[tuple[float, ...]]:
    """Looks from the new end, since nearly always only the last reading is new."""
    new = itertools.takewhile(lambda each: each.reading > reading, reversed(entries))
    return [each.values for each in new][::-1]
