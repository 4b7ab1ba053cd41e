"""Writes tracks as the JSON of Chrome's trace viewer, which Perfetto reads: times in microseconds.

Perfetto drops a slice that overlaps another one of its track, be it by a nanosecond. So ends are
rounded, not durations. Several jobs may be asked for memory at once: that track gets further rows
where it needs them.

Perfetto takes track 0 of a group, and the one with the group's number, for the group's main track.
So groups, jobs and rows of memory have numbers of their own. Perfetto shows them behind the names.
"""

from __future__ import annotations

from typing import Any

from gpushare.cli.trace.tracks import MEMORY, DeviceTracks, Event
from gpushare.printable import printable

_FIRST_GROUP = 1_000_000
"""Above all jobs' numbers."""
_FIRST_MEMORY_ROW = 2_000_000


def device_events(index: int, title: str, tracks: DeviceTracks, zero: float) -> list[Any]:
    """Returns the events of one device.

    Args:
        index: Which of the trace's devices it is, from 0 on; the viewer groups its tracks.
        title: The group's name.
        tracks: What was recorded, and is finished.
        zero: What time of theirs is 0 in the trace, in seconds.
    """
    group = _FIRST_GROUP + index
    rows = _rows_of_memory([e for e in tracks.events if e.track == MEMORY and e.kind == "slice"])
    names = {number: name or "job" for number, name in tracks.names.items()}
    titles = names | {
        _FIRST_MEMORY_ROW + row: "memory asked for" for row in range(max([0, *rows.values()]) + 1)
    }
    events = [_name(group, 0, "process_name", title)]
    for number, name in titles.items():
        events.append(_name(group, number, "thread_name", name))
        order = {"name": "thread_sort_index", "args": {"sort_index": number}}
        events.append({"ph": "M", "pid": group, "tid": number} | order)
    ends: dict[int, int] = {}
    for event in sorted(tracks.events, key=lambda each: each.at):
        track = event.track
        if track == MEMORY:
            track = _FIRST_MEMORY_ROW + rows.get(id(event), 0)
        if event.kind == "figures":
            # A figure's track has no place among the job's: its name tells whose it is.
            name = f"{names.get(track, 'job')} ({track}) {event.name}"
            event = event._replace(name=name)  # noqa: PLW2901
        begin = _nanoseconds(event.at - zero)
        end = _nanoseconds(event.at + event.seconds - zero)
        if event.kind == "slice":
            begin = max(begin, ends.get(track, begin))
            ends[track] = end = max(begin, end)
        events.append(_json(event, {"pid": group, "tid": track}, begin, end))
    return events


def _rows_of_memory(slices: list[Event]) -> dict[int, int]:
    """The row of each slice, by the slice's identity: the first row that is free then."""
    ends: list[float] = []
    rows = {}
    for each in sorted(slices, key=lambda each: each.at):
        index = next((i for i, end in enumerate(ends) if end <= each.at), len(ends))
        ends[index : index + 1] = [each.at + each.seconds]
        rows[id(each)] = index
    return rows


def _name(group: int, track: int, what: str, name: str) -> dict[str, Any]:
    args = {"name": printable(name)}
    return {"ph": "M", "pid": group, "tid": track, "name": what, "args": args}


def _json(event: Event, place: dict[str, int], begin_ns: int, end_ns: int) -> dict[str, Any]:
    details = {
        key: printable(value) if isinstance(value, str) else value
        for key, value in event.details.items()
    }
    common = {"name": printable(event.name), **place, "ts": begin_ns / 1e3, "args": details}
    if event.kind == "slice":
        return {"ph": "X", **common, "dur": (end_ns - begin_ns) / 1e3}
    if event.kind == "mark":
        return {"ph": "i", "s": "t", **common}
    return {"ph": "C", **common}


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
