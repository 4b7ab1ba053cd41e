"""Microsoft's Philly trace (``cluster_job_log``): JSON, with each attempt of each job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from gpushare.simulate.imports.ran_job import RanJob, seconds_of, shown

FORM = "Philly's cluster_job_log"
_MOST_DEEP = 100
"""Lists and objects inside each other, far more than a job has."""
_BRACKET_OR_TEXT = re.compile(r'[][{}]|"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def is_philly(text: str) -> bool:
    """Whether a text looks like one."""
    return text.lstrip()[:1] == "[" and '"attempts"' in text


def read(text: str) -> Iterator[RanJob]:
    """Yields its jobs; a name has the virtual cluster before the job's number.

    A job's time is that of all its attempts. An attempt without a start or an end counts as none.

    Raises:
        ValueError: It is not of this form; the text says where.
    """
    try:
        entries = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{FORM}: line {error.lineno}: {error.msg}") from error
    except ValueError as error:  # a number of thousands of digits
        raise ValueError(f"{FORM}: {error}") from error
    except RecursionError as error:
        raise ValueError(
            f"{FORM}: line {_deep_line(text)}: more than {_MOST_DEEP} lists or objects are inside "
            "each other, and those of a job are 7"
        ) from error
    for number, entry in enumerate(entries, start=1):
        place = f"job {number}"
        try:
            job = _job(entry)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{FORM}: {place}: {what}") from error
        yield job._replace(place=place)


def _deep_line(text: str) -> int:
    """The number of the line in which a text is nested too deeply."""
    depth = 0
    for found in _BRACKET_OR_TEXT.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth > _MOST_DEEP:
            return text.count("\n", 0, found.start()) + 1
    return 1


def _job(entry: dict[str, Any]) -> RanJob:
    attempts = entry["attempts"]
    spans = [
        _time(attempt, "end_time") - _time(attempt, "start_time")
        for attempt in attempts
        if _is_time(attempt["start_time"]) and _is_time(attempt["end_time"])
    ]
    gpus = [sum(len(host["gpus"]) for host in attempt["detail"]) for attempt in attempts]
    return RanJob(
        name=f"{entry['vc']}.{entry['jobid']}",
        user=_text(entry, "user"),
        submit_seconds=_time(entry, "submitted_time"),
        seconds=sum(spans),
        gpus=max(gpus, default=0),
    )


def _text(entry: dict[str, Any], name: str) -> str:
    value = entry[name]
    if not isinstance(value, str):
        raise ValueError(f"{name!r}: {shown(json.dumps(value))} is not a text in quotes")
    return value


def _time(entry: dict[str, Any], name: str) -> float:
    return seconds_of(_text(entry, name), repr(name))


def _is_time(text: str | None) -> bool:
    return text is not None and text != "None"
