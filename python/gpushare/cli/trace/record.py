"""Looks at coordinators again and again for some seconds, and makes a trace of what was seen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from gpushare.cli._targets.coordinators import Answer, ask_each
from gpushare.cli.trace.chrome import device_events
from gpushare.cli.trace.merge import UNIX_ZERO
from gpushare.cli.trace.tracks import DeviceTracks
from gpushare.errors import CoordinatorUnreachable, GpushareError

if TYPE_CHECKING:
    from gpushare.cli._targets.coordinators import DeviceSockets

LOOK_SECONDS = 0.02
"""A coordinator keeps 64 decisions; two jobs that take turns as fast as they may make fewer."""


class Recording:
    """Several devices; a device whose coordinator has started anew counts as another one."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.tracks: dict[tuple[str, int], DeviceTracks] = {}
        self.why_ended = ""
        self._started: dict[tuple[str, int], float] = {}

    def run(self, sockets: list[DeviceSockets], first: list[Answer], seconds: float) -> None:
        """Looks until the time is over, until Ctrl-C, or until no coordinator answers.

        Args:
            sockets: Where to look.
            first: What the coordinators have said already.
            seconds: How long. What was seen is kept if it ends earlier; ``why_ended`` says why.
        """
        answers, end = first, time.monotonic() + seconds
        try:
            while True:
                for answer in answers:
                    self.add(answer.report, time.monotonic())
                if time.monotonic() >= end:
                    break
                time.sleep(LOOK_SECONDS)
                answers = ask_each(sockets)
        except KeyboardInterrupt:
            self.why_ended = "Ctrl-C"
        except CoordinatorUnreachable as error:
            self.why_ended = str(error)
        for tracks in self.tracks.values():
            tracks.finish()

    def add(self, report: dict[str, Any], clock: float) -> None:
        """Takes in a report.

        Args:
            report: As the coordinator sent it.
            clock: When it came, by the monotonic clock.

        Raises:
            GpushareError: The coordinator is of an earlier version, which says less.
        """
        try:
            self._add(report, clock)
        except KeyError as error:
            raise GpushareError(
                f"the coordinator is of an earlier version and does not say {error}. "
                "Start it anew: gpushare coordinator stop --force"
            ) from error

    def _add(self, report: dict[str, Any], clock: float) -> None:
        now = report["coordinator"]["uptime_seconds"]
        for device in report["devices"]:
            key = (device["device"], report["coordinator"]["epoch"])
            # The report that took least to come shows best when the coordinator started.
            self._started[key] = min(self._started.get(key, clock - now), clock - now)
            decisions = [
                {**each, "at": now - each["seconds_ago"]}
                for each in report["decisions"]
                if each["device"] == device["device"]
            ]
            self.tracks.setdefault(key, DeviceTracks()).add(now, device, decisions)

    def trace(self) -> dict[str, Any]:
        """Returns the whole, in the form of Chrome's trace viewer."""
        zero = min(
            self._started[key] + min((event.at for event in tracks.events), default=0.0)
            for key, tracks in self.tracks.items()
        )
        events = [
            event
            for number, (key, tracks) in enumerate(self.tracks.items())
            for event in device_events(
                number, f"gpushare {key[0]}", tracks, zero - self._started[key]
            )
        ]
        unix_zero = time.time() - (time.monotonic() - zero)
        other = {"clock_monotonic_seconds_at_0": zero, UNIX_ZERO: unix_zero, "gaps": self.num_gaps}
        return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}

    @property
    def num_gaps(self) -> int:
        """How often the coordinator has decided more between two looks than it keeps."""
        return sum(tracks.num_gaps for tracks in self.tracks.values())
