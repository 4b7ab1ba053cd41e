"""Asks the coordinators once a second, and keeps what all browsers are shown.

However many browsers look, there is one reading. A coordinator that does not answer in time makes
the next reading late, and its device says why; the other devices are shown as they are.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from typing import TYPE_CHECKING, Any

from gpushare.cli._targets.coordinators import (
    Answer,
    DeviceSockets,
    lacking_text,
    without_doubles,
)
from gpushare.cli.dashboard.rows import device_row, printable_all
from gpushare.cli.dashboard.timeline import WINDOW_SECONDS, Timeline
from gpushare.printable import printable
from gpushare.users import user_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpushare.cli._exporter.asking import Asked, Coordinators

READING_SECONDS = 1.0
_NO_REPORT = (KeyError, TypeError, AttributeError, ValueError)
_EARLIER = (
    "The coordinator is of an earlier version, and a timeline of it is not possible. "
    "Start it anew: gpushare coordinator stop --force"
)


class Feed:
    """The last reading and the timelines; of the event loop's thread."""

    def __init__(self, coordinators: Coordinators) -> None:
        """Asks nobody yet.

        Args:
            coordinators: Whom to ask.
        """
        self.reading = 0
        self.is_ending = False
        self.error: Exception | None = None
        """Why reading ended by itself: a fault of the dashboard's own."""
        self.on_error: Callable[[], None] = lambda: None
        self._coordinators = coordinators
        self._timelines: dict[str, Timeline] = {}
        self._sockets: dict[tuple[str, int, int], DeviceSockets] = {}
        self._page: dict[str, Any] = {}
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        """Reads until it is cancelled. After a fault ``error`` is set, and all pages end."""
        try:
            await self._read()
        except Exception as error:
            self.error, self.is_ending = error, True
            async with self._changed:
                self._changed.notify_all()
            self.on_error()

    async def _read(self) -> None:
        while True:
            begun = time.monotonic()
            asked = await asyncio.to_thread(self._coordinators.ask)
            self.take(asked)
            async with self._changed:
                self._changed.notify_all()
            rest = READING_SECONDS - (time.monotonic() - begun)
            await asyncio.sleep(max(rest, 0.1))

    async def next(self, seen: int) -> dict[str, Any] | None:
        """Waits for a later reading, and returns what it has for a page; None at the end.

        Args:
            seen: The number of the last reading that the page has; 0 for none.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self.reading > seen or self.is_ending)
        return None if self.is_ending else self.page(seen)

    def page(self, seen: int) -> dict[str, Any]:
        """Returns the last reading, with the part of the timelines that is later than ``seen``."""
        devices = [
            {**device, "timeline": self._timelines[device["key"]].since(seen)}
            if device["key"] in self._timelines
            else device
            for device in self._page["devices"]
        ]
        return {**self._page, "devices": devices}

    def sockets_of(self, device: str, job: int, pid: int) -> DeviceSockets | None:
        """Returns where the coordinator of a job listens; None if the last reading has no such job.

        A coordinator that starts anew gives numbers anew, so the process counts, too.
        """
        return self._sockets.get((device, job, pid))

    def take(self, asked: list[Asked]) -> None:
        """Takes in a reading."""
        self.reading += 1
        answers, notes = [], []
        for each in asked:
            if each.report is None:
                notes.append({"device": each.sockets.device, "text": each.why_not})
            else:
                answers.append(Answer(each.sockets, each.report))
        devices: list[dict[str, Any]] = []
        self._sockets = {}
        for answer in answers:
            try:
                devices += self._devices(answer, notes)
                (report,) = without_doubles([answer])
                notes += [
                    {"device": "", "text": f"warning: {row['text']}"} for row in report["warnings"]
                ]
            except _NO_REPORT as error:
                text = lacking_text(error)
                notes.append({"device": answer.sockets.device, "text": text})
        alive = {device["key"] for device in devices}
        self._timelines = {key: each for key, each in self._timelines.items() if key in alive}
        self._page = printable_all(
            {
                "reading": self.reading,
                "user": user_name(os.geteuid()),
                "host": socket.gethostname(),
                "window_seconds": WINDOW_SECONDS,
                "devices": devices,
                "notes": notes,
            }
        )

    def _devices(self, answer: Answer, notes: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The devices of one coordinator; their timelines go on."""
        report, rows = answer.report, []
        for device in report["devices"]:
            epoch = report["coordinator"].get("epoch", 0)
            key = printable(f"{device['device']} {epoch}")
            row = {**device_row(device), "key": key}
            try:
                self._timelines.setdefault(key, Timeline()).add(self.reading, report, device)
            except KeyError:
                del self._timelines[key]
                notes.append({"device": device["device"], "text": _EARLIER})
            for job in device["jobs"]:
                self._sockets[device["device"], job["job"], job["pid"]] = answer.sockets
            rows.append(row)
        if report.get("jobs_left_out"):
            text = f"{report['jobs_left_out']} jobs more do not fit into the coordinator's answer"
            notes.append({"device": report["devices"][0]["device"], "text": text})
        return rows
