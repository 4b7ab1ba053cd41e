"""Slices, marks and figures of one device, gathered report by report.

A report has the coordinator's last 64 decisions, with their times, and says where each job stands
now. A lease begins with the decision "grant". No decision says when it ends: that is seen in the
next report, or at the next grant in its lane. The growth of the job's `served_seconds` says how
long its lease was. Where a job had several leases between two reports, the growth says how long
they were together, and each is drawn shorter by the same part. So a job's leases add up to what it
was served.

All times are seconds since the coordinator's start.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

MEMORY = 0
"""The track of what jobs were asked to give; the others are jobs' numbers, from 1 on."""
LEASE = "lease"
WAIT = "waits for a lease"
_SAME_SECONDS = 2e-7
"""Times are differences of what was rounded, so equal ones differ a little."""
_HOLDING = {"running", "closing"}
BYTES, MOVED = "bytes", "total bytes"
_FIGURES = {
    BYTES: {"resident": "resident_bytes", "spilled": "spilled_bytes"},
    MOVED: {
        "spilled": "spilled_total_bytes",
        "restored": "restored_total_bytes",
        "dropped": "dropped_total_bytes",
    },
}
"""A job's curves, with the fields of its row that they show."""
_NONE = {name: dict.fromkeys(fields, 0) for name, fields in _FIGURES.items()}
_UNMARKED = {"grant", "revoke", "released", "wait"}
"""Decisions that are slices, or that the wait's slice shows."""


class Event(NamedTuple):
    """Something to draw."""

    kind: Literal["slice", "mark", "figures"]
    track: int
    name: str
    at: float
    seconds: float = 0.0
    """How long a slice lasts."""
    details: dict[str, Any] = {}  # noqa: RUF012 - never changed


class _Open(NamedTuple):
    at: float
    lane: int
    reason: str
    is_along: bool


class DeviceTracks:
    """One device under one coordinator."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.events: list[Event] = []
        self.names: dict[int, str] = {}
        self.num_gaps = 0
        self._now = 0.0
        self._last: float | None = None
        self._leases: dict[int, _Open] = {}
        self._ended: dict[int, list[tuple[_Open, float]]] = {}
        self._waits: dict[int, float] = {}
        self._asked: dict[int, tuple[float, str]] = {}
        self._rows: dict[int, dict[str, Any]] = {}
        self._figures: dict[tuple[int, str], dict[str, int]] = {}
        self._drawn_until: dict[int, float] = {}

    def add(self, now: float, device: dict[str, Any], decisions: list[dict[str, Any]]) -> None:
        """Takes in what a report says.

        Args:
            now: The report's moment.
            device: The device's part of it.
            decisions: Those of this device, the oldest first; with ``at``.
        """
        rows = {job["job"]: job for job in device["jobs"]}
        self.names.update({number: job["name"] for number, job in rows.items()})
        for decision in self._new(decisions, now):
            self._take(decision)
        self._look(now, rows)
        self._end_leases(now, rows)
        self._rows, self._now = rows, now

    def finish(self) -> None:
        """Ends what is under way at the last report's moment."""
        for number, lease in list(self._leases.items()):
            self._add_lease(number, lease, self._now)
        for number in list(self._waits):
            self._end_wait(number, self._now)
        for number in list(self._asked):
            self._end_asked(number, self._now, "not answered yet")

    def under_way(self) -> list[Event]:
        """Returns the leases and waits that have not ended, as long as they are by now."""
        leases = [
            Event("slice", number, LEASE, lease.at, self._now - lease.at)
            for number, lease in self._leases.items()
        ]
        waits = [
            Event("slice", number, WAIT, began, self._now - began)
            for number, began in self._waits.items()
        ]
        return leases + waits

    def take(self) -> list[Event]:
        """Returns the events since the last call, and forgets jobs that are gone.

        For a caller that draws without end.
        """
        events, self.events = self.events, []
        self.names = {number: row["name"] for number, row in self._rows.items()}
        self._figures = {key: each for key, each in self._figures.items() if key[0] in self._rows}
        drawn = self._drawn_until.items()
        self._drawn_until = {number: end for number, end in drawn if number in self._rows}
        return events

    def _new(self, decisions: list[dict[str, Any]], now: float) -> list[dict[str, Any]]:
        """Those that no report had before; of the first report none, since they are older."""
        newest = decisions[-1]["at"] if decisions else None
        before, self._last = self._last, newest if newest is not None else self._last
        if not self._now:
            self._now = now
            return []
        if before is None:
            return decisions
        new = [each for each in decisions if each["at"] > before + _SAME_SECONDS]
        if new and len(new) == len(decisions):
            self.num_gaps += 1
            self.events.append(Event("mark", MEMORY, "decisions are missing here", self._now))
        return new

    def _take(self, decision: dict[str, Any]) -> None:
        number, what, at, reason = (decision[key] for key in ("job", "what", "at", "reason"))
        if what == "grant":
            is_along = reason.startswith("along with")
            for other, lease in list(self._leases.items()):
                if other == number or (lease.lane == decision["lane"] and not is_along):
                    self._end_lease(other, at)
            self._leases[number] = _Open(at, decision["lane"], reason, is_along)
            self._end_wait(number, at)
        elif what == "revoke":
            self._end_asked(number, at, "asked again")
            self._asked[number] = (at, reason)
        elif what == "leave" and number in self._leases:
            self._end_lease(number, at)
        elif what == "released" and ", more to come" not in reason:
            self._end_asked(number, at, reason)
        if what not in _UNMARKED:
            self.events.append(Event("mark", number, what, at, 0.0, {"reason": reason}))

    def _look(self, now: float, rows: dict[int, dict[str, Any]]) -> None:
        """What of a report is no decision."""
        for number, row in rows.items():
            if row["state"] in _HOLDING:
                self._end_wait(number, now)
                if number not in self._leases:
                    at = max(self._now, now - self._served_more(number, row))
                    self._leases[number] = _Open(at, row["lane"], "", is_along=True)
            elif number in self._leases and not self._is_lost_with_lease(now, row):
                self._end_lease(number, now)
            if row["waiting_seconds"] > 0:
                self._waits.setdefault(number, now - row["waiting_seconds"])
            else:
                self._end_wait(number, now)
            self._look_at_figures(now, row)
        for number in set(self._rows) - set(rows):
            self._draw_figures(now, number, BYTES, _NONE[BYTES])
        for number in set(self._leases) - set(rows):
            self._end_lease(number, now)
        for number in set(self._waits) - set(rows):
            self._end_wait(number, now)
        for number in set(self._asked) - set(rows):
            self._end_asked(number, now, "the job is gone")

    def _is_lost_with_lease(self, now: float, row: dict[str, Any]) -> bool:
        """Whether a job that is lost still holds its lease, which its state does not say.

        Its process may go on without a connection, and is served until it is gone.
        """
        number = row["job"]
        since = max(self._leases[number].at, self._now)
        whole = now - since - _SAME_SECONDS
        return row["state"] == "lost" and self._served_more(number, row) >= whole

    def _look_at_figures(self, now: float, row: dict[str, Any]) -> None:
        for name, fields in _FIGURES.items():
            figures = {title: row[field] for title, field in fields.items()}
            self._draw_figures(now, row["job"], name, figures)

    def _draw_figures(self, now: float, number: int, name: str, figures: dict[str, int]) -> None:
        """Draws figures that have changed."""
        before = self._figures.get((number, name))
        if name == MOVED:
            # A job that never moved memory has no curves of that. The row of a job that has closed
            # its part counts nothing any more, but what it moved before was moved.
            before = before or _NONE[name]
            figures = {title: max(each, before[title]) for title, each in figures.items()}
        if figures != before:
            self._figures[number, name] = figures
            self.events.append(Event("figures", number, name, now, 0.0, figures))

    def _served_more(self, number: int, row: dict[str, Any]) -> float:
        """How much longer the job has held leases than at the last report."""
        before: float = self._rows.get(number, {}).get("served_seconds", 0.0)
        served: float = row["served_seconds"]
        return max(served - before, 0.0)

    def _end_lease(self, number: int, at: float) -> None:
        self._ended.setdefault(number, []).append((self._leases.pop(number), at))

    def _end_leases(self, now: float, rows: dict[int, dict[str, Any]]) -> None:
        """Adds the leases that ended since the last report, as long as is known of them."""
        for number, ended in self._ended.items():
            begins = [max(lease.at, self._now) for lease, _ in ended]
            longest = sum(end - begin for begin, (_, end) in zip(begins, ended, strict=True))
            part = 1.0
            if number in rows and longest > 0:
                part = min(self._served_by_ended(number, now, rows[number]) / longest, 1.0)
            for begin, (lease, end) in zip(begins, ended, strict=True):
                self._add_lease(number, lease, begin + (end - begin) * part)
        self._ended.clear()

    def _served_by_ended(self, number: int, now: float, row: dict[str, Any]) -> float:
        """How long the job held leases since the last report, less the one that it holds now."""
        held = self._leases.get(number)
        of_held = now - max(held.at, self._now) if held else 0.0
        return max(self._served_more(number, row) - of_held, 0.0)

    def _add_lease(self, number: int, lease: _Open, end: float) -> None:
        details = {"granted": lease.reason} if lease.reason else {}
        self.events.append(Event("slice", number, LEASE, lease.at, end - lease.at, details))
        self._drawn_until[number] = end

    def _end_wait(self, number: int, at: float) -> None:
        began = self._waits.pop(number, None)
        if began is not None:
            # Where the end of the lease before is not known exactly, it may be drawn too late.
            began = min(max(began, self._drawn_until.get(number, began)), at)
            self.events.append(Event("slice", number, WAIT, began, at - began))

    def _end_asked(self, number: int, at: float, answer: str) -> None:
        asked = self._asked.pop(number, None)
        if asked is not None:
            name = f"asked of {self.names.get(number) or number}"
            details = {"asked": asked[1], "given": answer}
            self.events.append(Event("slice", MEMORY, name, asked[0], at - asked[0], details))
