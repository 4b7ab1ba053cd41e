"""What a page asks for one job: why it waits, or a change. Each asks the job's coordinator once.

The coordinator decides by the user of the dashboard's process, exactly as it does for commands.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from gpushare._accounts.accounts import Accounts, Filter
from gpushare._coordinator.client import CoordinatorClient
from gpushare._settings.arguments import PAUSED, RESUMED, job_changes
from gpushare.cli._exporter.asking import ANSWER_SECONDS
from gpushare.cli._screen.line import plain
from gpushare.cli._targets.jobs import label
from gpushare.cli.history import COLUMNS
from gpushare.cli.pause import paused_text
from gpushare.cli.resume import resumed_text
from gpushare.cli.set import settings_text
from gpushare.cli.why import why_lines

if TYPE_CHECKING:
    from gpushare.cli._targets.coordinators import DeviceSockets

MOST_HISTORY = 100
"""Jobs that have ended."""


class Change(NamedTuple):
    """What to ask of a coordinator, and how to say that it was done."""

    changes: dict[str, Any]
    said: Callable[[dict[str, Any]], str]


def read_change(what: Any, value: Any) -> Change:
    """Returns what a page asks for.

    Args:
        what: "pause", "resume" or "priority".
        value: The priority.

    Raises:
        ValueError: It is none of these, or there is no such priority.
    """
    if what == "pause":
        return Change(PAUSED, paused_text)
    if what == "resume":
        return Change(RESUMED, resumed_text)
    if what == "priority":
        return Change(
            job_changes(priority=str(value)), lambda row: f"{label(row)}: {settings_text(row)}"
        )
    raise ValueError(f"what: {str(what)!r}; allowed: pause, resume or priority")


def make_change(sockets: DeviceSockets, number: int, change: Change) -> str:
    """Changes a job, and returns the words of the command line for it.

    Raises:
        CoordinatorUnreachable: The coordinator does not answer.
        RefusedError: It will not do it, or the job has ended.
    """
    report = CoordinatorClient(sockets.paths, ANSWER_SECONDS).set_job(number, change.changes)
    rows = (row for device in report["devices"] for row in device["jobs"])
    row = next((row for row in rows if row["job"] == number), None)
    return f"job {number} has ended" if row is None else change.said(row)


def why(sockets: DeviceSockets, number: int) -> str:
    """Returns the lines of ``gpushare why`` for a job.

    Raises:
        CoordinatorUnreachable: The coordinator does not answer.
        RefusedError: The job has ended.
    """
    answer = CoordinatorClient(sockets.paths, ANSWER_SECONDS).why(number).get("why")
    if answer is None:
        return f"The coordinator of job {number} is of an earlier version and cannot say why."
    return plain(why_lines(answer, None))


def history() -> dict[str, Any]:
    """Returns the table of ``gpushare history``, the newest job first, and what was left out."""
    with closing(Accounts()) as accounts:
        jobs = accounts.jobs(Filter(most=MOST_HISTORY))
    return {
        "heads": [column.head for column, _ in COLUMNS],
        "rows": [[cell(job) for _, cell in COLUMNS] for job in reversed(jobs)],
        "notes": list(accounts.notes),
    }
