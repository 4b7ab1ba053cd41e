"""Microsoft's Philly trace (``cluster_job_log``): JSON, with each attempt of each job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gpushare.simulate.imports.ran_job import RanJob, seconds_of

FORM = "Philly's cluster_job_log"


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
    for number, entry in enumerate(entries, start=1):
        try:
            yield _job(entry)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{FORM}: job {number}: {what}") from error


def _job(entry: dict[str, Any]) -> RanJob:
    attempts = entry["attempts"]
    spans = [
        seconds_of(attempt["end_time"]) - seconds_of(attempt["start_time"])
        for attempt in attempts
        if _is_time(attempt["start_time"]) and _is_time(attempt["end_time"])
    ]
    gpus = [sum(len(host["gpus"]) for host in attempt["detail"]) for attempt in attempts]
    return RanJob(
        name=f"{entry['vc']}.{entry['jobid']}",
        user=entry["user"],
        submit_seconds=seconds_of(entry["submitted_time"]),
        seconds=sum(spans),
        gpus=max(gpus, default=0),
    )


def _is_time(text: str | None) -> bool:
    return text is not None and text != "None"
