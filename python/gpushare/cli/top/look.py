"""One look at all coordinators: what they say, and which of them do not answer."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from gpushare._settings import config
from gpushare.cli._exporter.asking import Asked, Coordinators
from gpushare.cli._exporter.rows import labelled_rows
from gpushare.cli._targets.coordinators import (
    NO_SOCKETS,
    Answer,
    find_sockets,
    lacking_text,
    merge_reports,
    without_doubles,
)
from gpushare.cli.top.history import History, JobId

_NOTHING: dict[str, Any] = {"devices": [], "unmanaged": [], "warnings": []}


class _Fields(NamedTuple):
    """What the screen takes for granted in a row of a report."""

    numbers: tuple[str, ...]
    texts: tuple[str, ...] = ()


_OF_DEVICE = _Fields(("capacity_bytes", "free_bytes"), ("device", "policy"))
_OF_LANE = _Fields(("holder", "next"))
_OF_JOB = _Fields(
    (
        *("job", "pid", "uid", "iterations", "iterations_per_second", "share"),
        *("resident_bytes", "spilled_bytes"),
    ),
    ("name", "state", "priority", "explain"),
)
_OF_PROCESS = _Fields(("pid", "uid", "resident_bytes"), ("device",))
_OF_WARNING = _Fields((), ("text",))


class Silent(NamedTuple):
    """A coordinator that does not answer."""

    device: str
    """Its device; "" where a setting names the socket and nobody has answered there yet."""
    why: str
    """A sentence."""


class Look(NamedTuple):
    """What was seen at one moment."""

    report: dict[str, Any]
    """Of all coordinators that answered, merged; without ``coordinator`` where none did."""
    silent: list[Silent]
    paths: dict[str, list[str]]
    """Of each device that answered: the sockets of its coordinator."""
    history: History
    """Of the looks that were remembered."""
    at: float = 0.0
    """When the answers were there: seconds on a monotonic clock."""

    def remember(self) -> None:
        """Adds this look to the history; for the thread that draws, as it reads the history."""
        self.history.add(self.at, self.devices())

    def devices(self) -> list[dict[str, Any]]:
        """Returns the devices' part of the report."""
        devices: list[dict[str, Any]] = self.report["devices"]
        return devices

    def job(self, key: JobId) -> dict[str, Any] | None:
        """Returns the row of a job, or None where it has ended."""
        for device in self.devices():
            for job in device["jobs"]:
                if JobId(device["device"], job["pid"]) == key:
                    found: dict[str, Any] = job
                    return found
        return None


class Watch:
    """Looks again and again. One thread at a time may do so."""

    def __init__(self, device: str) -> None:
        """Asks nobody yet.

        Args:
            device: Of all devices only this one; "" for all.

        Raises:
            ConfigError: No command knows that device, or a setting is wrong.
        """
        settings = config.load()
        find_sockets(settings, device)  # says what is wrong with the device's name
        self._coordinators = Coordinators(
            lambda: find_sockets(settings, device), is_named=bool(device or settings.socket)
        )
        self._history = History()
        self._names: dict[str, str] = {}

    def look(self) -> Look:
        """Asks each coordinator once, and waits for none longer than ``asking`` says.

        Returns:
            What they say; it is not in the history yet.
        """
        asked = [_checked(each) for each in self._coordinators.ask()]
        answers = [Answer(each.sockets, each.report) for each in asked if each.report is not None]
        report = merge_reports(without_doubles(answers)) if answers else _NOTHING
        paths = {}
        for answer in answers:
            for device in answer.report["devices"]:
                self._names[answer.sockets.device] = device["device"]
                paths[device["device"]] = answer.sockets.paths
        silent = [
            Silent(
                self._names.get(each.sockets.device, each.sockets.device),
                each.why_not if each.sockets.paths else NO_SOCKETS,
            )
            for each in asked
            if each.report is None
        ]
        return Look(report, silent, paths, self._history, time.monotonic())


def _checked(asked: Asked) -> Asked:
    """The same; without the report if it lacks what every coordinator says."""
    if asked.report is None:
        return asked
    try:
        for _ in labelled_rows(asked.report):
            pass
        for device in asked.report["devices"]:
            _check(device, _OF_DEVICE)
            for job in device["jobs"]:
                _check(job, _OF_JOB)
            for lane in device["lanes"]:
                _check(lane, _OF_LANE)
        for process in asked.report["unmanaged"]:
            _check(process, _OF_PROCESS)
        for warning in asked.report["warnings"]:
            _check(warning, _OF_WARNING)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return Asked(asked.sockets, None, lacking_text(error))
    return asked


def _check(row: dict[str, Any], wanted: _Fields) -> None:
    """Raises what ``_checked`` catches where a field is missing or something else."""
    for key in wanted.numbers:
        row[key] + 0
    for key in wanted.texts:
        row[key].isprintable()
