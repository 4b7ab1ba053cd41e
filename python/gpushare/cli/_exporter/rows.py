"""Takes a coordinator's report apart into rows, each with the labels of its series.

Job names are what users type, and there may be many jobs. So texts become printable and short, and
beyond a number of jobs or users the rest has no rows: the device's figures still count them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from gpushare.cli._exporter.metric import Row, Scope
from gpushare.printable import printable
from gpushare.users import user_name

MOST_JOBS = 100
"""Of a device; those with the lowest numbers, which are the oldest."""
MOST_USERS = 100
MOST_LABEL = 64
"""Characters of a label's value; of a longer text a "~" stands for the middle."""
_HOLDING = {"running", "closing"}

# A directory of accounts on the network may be slow, and is not to be asked at each scrape.
_known_user_name = functools.lru_cache(maxsize=1024)(user_name)


class JobKey(NamedTuple):
    """What tells a job from all others; another one where the coordinator has started anew."""

    device: str
    epoch: int
    number: int
    pid: int


class LabelledRow(NamedTuple):
    """A row of a report."""

    scope: Scope
    labels: tuple[str, ...]
    """The values of the scope's labels."""
    row: Row
    job: JobKey | None = None
    """Which job's it is, if it is one's."""


def label_text(text: Any) -> str:
    """Returns a text as it may stand in a label."""
    label = printable(str(text))
    if len(label) <= MOST_LABEL:
        return label
    at_end = (MOST_LABEL - 1) // 2  # where the names of a sweep differ
    return f"{label[: MOST_LABEL - 1 - at_end]}~{label[-at_end:]}"


def labelled_rows(report: dict[str, Any]) -> Iterator[LabelledRow]:
    """Yields the rows of a report, each device followed by its users and jobs.

    Raises:
        KeyError, TypeError, AttributeError, ValueError: It is no report.
    """
    for device in report["devices"]:
        name = label_text(device["device"])
        jobs = sorted(device["jobs"], key=lambda job: int(job["job"]))[:MOST_JOBS]
        left_out = len(device["jobs"]) - len(jobs) + report.get("jobs_left_out", 0)
        yield LabelledRow(Scope.DEVICE, (name,), _device_row(report, device, left_out))
        for user in device.get("users", [])[:MOST_USERS]:
            user_label = user["name"] or _known_user_name(user["uid"])
            yield LabelledRow(Scope.USER, (name, label_text(user_label)), user)
        holders = {lane["holder"] for lane in device["lanes"]}
        for job in jobs:
            is_holder = job["state"] in _HOLDING or job["job"] in holders
            yield LabelledRow(
                Scope.JOB,
                (name, str(int(job["job"])), *map(label_text, _names(job))),
                {**job, "is_holder": is_holder},
                JobKey(name, report["coordinator"].get("epoch", 0), job["job"], job["pid"]),
            )


def _names(job: Row) -> tuple[str, str]:
    return job["name"] or f"pid {job['pid']}", _known_user_name(job["uid"])


def _device_row(report: dict[str, Any], device: Row, left_out: int) -> Row:
    """The device with what the report says of it elsewhere."""
    elsewhere = {
        key: [row for row in report[key] if row["device"] == device["device"]]
        for key in ("warnings", "unmanaged")
    }
    coordinator = report["coordinator"]
    return {**device, **elsewhere, "coordinator": coordinator, "jobs_without_series": left_out}
