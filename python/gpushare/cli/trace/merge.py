"""Puts a recorded trace and files of torch.profiler on one clock, in one file.

torch's files count from ``baseTimeNanoseconds``, by the wall clock; where the field is missing they
count from 1970. A trace of ours says what the wall clock read at its 0. Both clocks are read on one
machine, so they agree to about a millisecond, unless the wall clock was set meanwhile.

A merged file counts from the 0 of the first trace of ours. torch's base is so long ago that times
since then, as fractions of microseconds, no longer tell nanoseconds apart. Leases that follow each
other would overlap by one, and Perfetto drops a slice that overlaps another one.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from gpushare.errors import GpushareError

UNIX_ZERO = "unix_seconds_at_0"
"""In ``otherData`` of a trace of ours."""
_BASE = "baseTimeNanoseconds"
_FIRST_GROUP = 1 << 30
"""Groups of ours have numbers above all process numbers, which torch's groups have."""


class Part(NamedTuple):
    """One file."""

    content: dict[str, Any]
    base_ns: int
    """What its time 0 is, in ns since 1970."""
    is_ours: bool


def read(path: Path) -> Part:
    """Reads a file of ``gpushare trace record`` or of torch.profiler, compressed or not.

    Raises:
        GpushareError: It is none, or cannot be read.
    """
    part = _read_json(path)
    for event in part.content["traceEvents"]:
        problem = _problem(event, is_ours=part.is_ours)
        if problem:
            raise GpushareError(f"{path} is no trace: {problem}")
    return part


def _problem(event: Any, *, is_ours: bool) -> str:
    """What keeps an event from being shifted and put into a group; "" if nothing does."""
    if not isinstance(event, dict):
        return "one of its events is no object"
    if not _is_finite(event.get("ts", 0)):
        return "an event has a ts that is no number"
    # torch has texts as some pids, and those of ours are counted on.
    if is_ours and not _is_whole(event.get("pid")):
        return "an event has a pid that is no whole number"
    return ""


def _read_json(path: Path) -> Part:
    """The file, whose events are not looked at."""
    try:
        data = path.read_bytes()
        content = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except OSError as error:
        raise GpushareError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise GpushareError(f"{path} is no JSON: it is no text in UTF-8") from error
    except (EOFError, ValueError, RecursionError, zlib.error) as error:
        raise GpushareError(f"{path} is no JSON: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
        raise GpushareError(f"{path} is no trace: it has no list of traceEvents")
    other = content.get("otherData")
    zero = other.get(UNIX_ZERO) if isinstance(other, dict) else None
    if isinstance(zero, float) and math.isfinite(zero * 1e9):
        return Part(content, int(zero * 1e9), is_ours=True)
    base = content.get(_BASE, 0)
    if not _is_whole(base):
        raise GpushareError(f"{path}: its {_BASE} is no whole number")
    return Part(content, base, is_ours=False)


def _is_whole(value: Any) -> bool:
    """Whether it is an integer that a field of 64 bits may have."""
    return isinstance(value, int) and abs(value) < 1 << 64


def _is_finite(value: Any) -> bool:
    """Whether it is a time in us that has a number of ns."""
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value * 1e3))


def merge(parts: list[Part]) -> dict[str, Any]:
    """Returns one trace, with all else that the first file of torch.profiler says.

    Raises:
        GpushareError: None of them is of ``gpushare trace record``, or all are.
    """
    profiles = [each for each in parts if not each.is_ours]
    if not profiles or len(profiles) == len(parts):
        kind = "torch.profiler" if not profiles else "gpushare trace record"
        raise GpushareError(f"none of these files is of {kind}: name one of each at least")
    base_ns = next(each.base_ns for each in parts if each.is_ours)
    events: list[Any] = []
    groups = 0
    for part in parts:
        shift_ns = part.base_ns - base_ns
        shifted = [_shifted(event, shift_ns) for event in part.content["traceEvents"]]
        if part.is_ours:
            shifted = [_in_group(event, _FIRST_GROUP + groups) for event in shifted]
            groups += 1 + max(
                (int(event["pid"]) for event in part.content["traceEvents"]), default=0
            )
        events += shifted
    return {**profiles[0].content, _BASE: base_ns, "traceEvents": events}


def _shifted(event: dict[str, Any], by_ns: int) -> dict[str, Any]:
    if not by_ns or "ts" not in event:
        return event
    return {**event, "ts": (round(event["ts"] * 1e3) + by_ns) / 1e3}


def _in_group(event: dict[str, Any], first: int) -> dict[str, Any]:
    return {**event, "pid": first + event["pid"]}
