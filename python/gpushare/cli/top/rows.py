"""Which rows the table has, and in which order."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gpushare.cli._ps.columns import sorted_rows
from gpushare.cli.top.history import JobId
from gpushare.users import user_name

if TYPE_CHECKING:
    from gpushare.cli.top.look import Look

# A directory of accounts on the network may be slow, and is not to be asked at each look.
user_of = functools.lru_cache(maxsize=1024)(user_name)


@dataclass
class Choice:
    """What the user has chosen on the screen."""

    sort: str = ""
    """A column of ``gpushare ps``; "" for the order of the numbers, device by device."""
    is_reversed: bool = False
    text: str = ""
    """Only rows with this in name, group, user or state, in whatever case."""
    is_mine: bool = False
    """Only one's own jobs."""
    selected: JobId | None = None
    is_readonly: bool = False


class Row(NamedTuple):
    """A row of the table."""

    key: JobId
    number: int
    """The device's place in the list of devices."""
    fields: dict[str, Any]
    """The job's, of the report, with the rate of now; of an unmanaged process what is known."""
    user: str
    is_job: bool = True


def rows_of(look: Look, choice: Choice) -> list[Row]:
    """Returns the rows to show: jobs in the order that is chosen, then processes that are none.

    Args:
        look: What was seen.
        choice: What the user wants of it.
    """
    numbers = {device["device"]: place for place, device in enumerate(look.devices())}
    jobs = [
        {**job, "device": device["device"], **_rate(look, device["device"], job)}
        for device in look.devices()
        for job in device["jobs"]
    ]
    if choice.sort:
        jobs = sorted_rows(jobs, f"-{choice.sort}" if choice.is_reversed else choice.sort)
    elif choice.is_reversed:
        jobs.reverse()
    rows = [
        Row(JobId(job["device"], job["pid"]), numbers[job["device"]], job, user_of(job["uid"]))
        for job in jobs
    ]
    rows += [
        Row(
            JobId(process["device"], process["pid"]),
            numbers.get(process["device"], 0),
            {**process, "state": "unmanaged", "name": f"pid {process['pid']}"},
            user_of(process["uid"]),
            is_job=False,
        )
        for process in look.report["unmanaged"]
    ]
    return [row for row in rows if _is_wanted(row, choice)]


def is_own(fields: dict[str, Any]) -> bool:
    """Tells whether a job is of the user who looks."""
    return bool(fields["uid"] == os.getuid())


def _rate(look: Look, device: str, job: dict[str, Any]) -> dict[str, Any]:
    """The rate of now in place of that since the job registered, where it is known."""
    rate = look.history.rates.get(JobId(device, job["pid"]))
    recent = rate.recent(job.get("iteration_seconds", 0.0)) if rate is not None else None
    return {} if recent is None else {"iterations_per_second": recent}


def _is_wanted(row: Row, choice: Choice) -> bool:
    if choice.is_mine and not is_own(row.fields):
        return False
    if not choice.text:
        return True
    texts = (row.fields["name"], row.fields.get("group", ""), row.user, row.fields["state"])
    return any(choice.text.casefold() in text.casefold() for text in texts)
