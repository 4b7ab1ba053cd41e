"""Changes of one's own jobs that the screen can ask the coordinator for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gpushare._coordinator.client import CoordinatorClient
from gpushare._settings import devices
from gpushare._settings.arguments import PAUSED, RESUMED, job_changes
from gpushare.cli._exporter.asking import ANSWER_SECONDS
from gpushare.cli._targets.jobs import label
from gpushare.cli.pause import paused_text
from gpushare.cli.resume import resumed_text
from gpushare.cli.top.rows import Choice, Row, is_own, user_of
from gpushare.errors import GpushareError
from gpushare.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpushare.cli.top.history import JobId
    from gpushare.cli.top.look import Look


class Change(NamedTuple):
    """What is to be changed of a job."""

    key: JobId
    changes: dict[str, Any]
    """As ``gpushare._settings.arguments.job_changes`` makes them."""
    done_text: Callable[[dict[str, Any]], str]
    """What to say then, of the job's row."""


def pause(key: JobId) -> Change:
    """Returns the change that keeps a job off the device."""
    return Change(key, PAUSED, paused_text)


def resume(key: JobId) -> Change:
    """Returns the change that lets a job take turns again."""
    return Change(key, RESUMED, resumed_text)


def set_priority(key: JobId, priority: str) -> Change:
    """Returns the change of a job's class."""
    return Change(
        key,
        job_changes(priority=priority),
        lambda row: f"{label(row)}: priority {row['priority']}",
    )


def who(row: Row) -> str:
    """Returns "job 4 (vit) on CPU": each device's coordinator has numbers of its own."""
    return f"{label(row.fields)} on {printable(devices.label(row.key.device))}"


def why_not(row: Row | None, choice: Choice) -> str:
    """Says why the screen changes nothing of a row; "" where it may.

    The coordinator judges, too: this says it before a question is asked.
    """
    if choice.is_readonly:
        return "nothing is changed: top was started with --readonly"
    if row is None:
        return "no job is selected: Up and Down select one"
    if not row.is_job:
        return f"{row.fields['name']} is no job: nothing of it can be changed"
    if not is_own(row.fields):
        user = printable(user_of(row.fields["uid"]))
        return f"{label(row.fields)} is {user}'s: only one's own jobs are changed here"
    return ""


def carry_out(change: Change, look: Look) -> str:
    """Asks the job's coordinator, and returns what to say of it.

    Args:
        change: What to do.
        look: The newest; a job's number may be another one since the question was asked.
    """
    job, paths = look.job(change.key), look.paths.get(change.key.device)
    if job is None or paths is None:
        return "nothing is changed: the job has ended, or its coordinator does not answer"
    try:
        report = CoordinatorClient(paths, ANSWER_SECONDS).set_job(job["job"], change.changes)
    except GpushareError as error:
        return printable(f"{label(job)} is not changed: {error}")
    rows = [row for each in report["devices"] for row in each["jobs"]]
    row = next((row for row in rows if row["job"] == job["job"]), None)
    return change.done_text(row) if row is not None else f"{label(job)} has ended"
