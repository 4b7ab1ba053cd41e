"""Writes tracks as the JSON of Chrome's trace viewer, which Perfetto reads: times in microseconds.

Slices of one track must not overlap. Several jobs may be asked for memory at once, so that track
gets further rows where it needs them.
"""

from __future__ import annotations

from typing import Any

from gpushare.cli.trace.tracks import MEMORY, DeviceTracks, Event
from gpushare.printable import printable

_FIRST_FURTHER_ROW = 1_000_000
"""Above all jobs' numbers."""


def device_events(process: int, title: str, tracks: DeviceTracks, zero: float) -> list[Any]:
    """Returns the events of one device.

    Args:
        process: The number under which the viewer groups them.
        title: The group's name.
        tracks: What was recorded, and is finished.
        zero: What time of theirs is 0 in the trace, in seconds.
    """
    rows = _rows_of_memory([e for e in tracks.events if e.track == MEMORY and e.kind == "slice"])
    names = {number: f"{name or 'job'} ({number})" for number, name in tracks.names.items()}
    names |= {_row(index): _memory_title(index) for index in range(max(1, len(set(rows.values()))))}
    events = [_name(process, 0, "process_name", title)]
    for number, name in names.items():
        events.append(_name(process, number, "thread_name", name))
        # Jobs in their order, and memory below them.
        place = number if number in tracks.names else number + _FIRST_FURTHER_ROW
        events.append(
            {"ph": "M", "pid": process, "tid": number, "name": "thread_sort_index"}
            | {"args": {"sort_index": place}}
        )
    for event in sorted(tracks.events, key=lambda each: each.at):
        track = rows.get(id(event), event.track)
        events.append(_json(event, process, track, names, zero))
    return events


def _row(index: int) -> int:
    return MEMORY if index == 0 else _FIRST_FURTHER_ROW + index


def _memory_title(index: int) -> str:
    return "memory asked for" + (f" ({index + 1})" if index else "")


def _rows_of_memory(slices: list[Event]) -> dict[int, int]:
    """The track of each slice, by the slice's identity: the first row that is free then."""
    ends: list[float] = []
    rows = {}
    for each in sorted(slices, key=lambda each: each.at):
        index = next((i for i, end in enumerate(ends) if end <= each.at), len(ends))
        ends[index : index + 1] = [each.at + each.seconds]
        rows[id(each)] = _row(index)
    return rows


def _name(process: int, track: int, what: str, name: str) -> dict[str, Any]:
    args = {"name": printable(name)}
    return {"ph": "M", "pid": process, "tid": track, "name": what, "args": args}


def _json(
    event: Event, process: int, track: int, names: dict[int, str], zero: float
) -> dict[str, Any]:
    details = {
        key: printable(value) if isinstance(value, str) else value
        for key, value in event.details.items()
    }
    common = {"pid": process, "tid": track, "ts": _microseconds(event.at - zero)}
    if event.kind == "slice":
        name = printable(event.name)
        duration = _microseconds(event.seconds)
        return {"ph": "X", "name": name, **common, "dur": duration, "args": details}
    if event.kind == "mark":
        return {"ph": "i", "s": "t", "name": printable(event.name), **common, "args": details}
    # A figure's track has no place among the job's: its name tells whose it is.
    name = printable(f"{names.get(event.track, event.track)} {event.name}")
    return {"ph": "C", "name": name, **common, "args": details}


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)
