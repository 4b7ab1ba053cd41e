"""The job that a command is about, found by its number or name, or the jobs of a group."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import typer

from gpushare._coordinator.client import CoordinatorClient, RefusedError
from gpushare._settings import config
from gpushare._settings.quantities import is_number
from gpushare.cli._targets.coordinators import Answer, ask_each, find_sockets
from gpushare.printable import printable

GROUP_MARK = "@"
"""Before the name of a group, where a command takes several jobs."""
JOBS_HELP = "The job's number, its name, or @GROUP for all of one's own jobs in a group."


def find_job(job: str, device: str) -> tuple[int, CoordinatorClient]:
    """Returns a job's number, and its coordinator's client.

    Args:
        job: Its number, or its name.
        device: The device that it is on; "" for any.

    Raises:
        CoordinatorUnreachable: No coordinator answers.
        RefusedError: No job has that name.
        typer.BadParameter: Several have, or it is a group.
    """
    answers = ask_each(find_sockets(config.load(), device))
    number, paths = _find_job(answers, job)
    return number, CoordinatorClient(paths)


def change_jobs(
    job: str, device: str, changes: dict[str, Any], tell: Callable[[dict[str, Any]], None]
) -> None:
    """Changes a job, or each job of the user's own in a group.

    A job of a group that is not changed, since it has just ended or the coordinator will not, does
    not keep the others from being changed.

    Args:
        job: Its number, its name, or "@" and the name of a group.
        device: The device that it is on; "" for any.
        changes: As ``gpushare._settings.arguments.job_changes`` makes them.
        tell: Called with each changed job's row of the report.

    Raises:
        CoordinatorUnreachable: No coordinator answers.
        RefusedError: No job is meant, or a coordinator refused; the others are changed then.
        typer.BadParameter: Several jobs have the name.
    """
    if not job.startswith(GROUP_MARK):
        tell(change_job(job, device, changes))
        return
    refused = []
    for number, client in _jobs_of_group(job.removeprefix(GROUP_MARK), device):
        try:
            row = _row_of(client.set_job(number, changes), number)
        except RefusedError as error:
            refused.append(f"job {number} is not changed: {error}")
        else:
            tell(row)
    if refused:
        raise RefusedError("; ".join(refused))


def change_job(job: str, device: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Changes a job, and returns its row of the report after it.

    Args:
        job: Its number, or its name.
        device: The device that it is on; "" for any.
        changes: As ``gpushare._settings.arguments.job_changes`` makes them.

    Raises:
        CoordinatorUnreachable: No coordinator answers.
        RefusedError: No job is meant, or the coordinator will not do it.
        typer.BadParameter: Several jobs are meant.
    """
    number, client = find_job(job, device)
    return _row_of(client.set_job(number, changes), number)


def change_policy(job: str, device: str, name: str) -> dict[str, Any]:
    """Changes whom the coordinator of a job serves next, and returns the job's row after it.

    Args:
        job: Its number, or its name.
        device: The device that it is on; "" for any.
        name: The policy's.

    Raises:
        CoordinatorUnreachable: No coordinator answers.
        RefusedError: No job is meant, or the coordinator is another user's.
        typer.BadParameter: Several jobs are meant.
    """
    number, client = find_job(job, device)
    return _row_of(client.set_policy(name), number)


def print_json(row: dict[str, Any]) -> None:
    """Prints what is known of a job as one JSON object."""
    print(json.dumps({"schema_version": 1, **row}))


def label(row: dict[str, Any]) -> str:
    """Returns "job 4 (vit)"."""
    name = f" ({printable(row['name'])})" if row["name"] else ""
    return f"job {row['job']}{name}"


def _jobs_of_group(group: str, device: str) -> list[tuple[int, CoordinatorClient]]:
    """The numbers of the user's own jobs in a group, each with its coordinator's client."""
    answers = ask_each(find_sockets(config.load(), device))
    found = [
        (int(row["job"]), CoordinatorClient(answer.sockets.paths))
        for answer in answers
        for row in _jobs(answer.report)
        if group and row.get("group") == group and row["uid"] == os.getuid()
    ]
    if not found:
        raise RefusedError(
            f"no job of yours is in the group {printable(group)}"
            f"{_starting_text(answers, 'group')}. See: gpushare ps --me -o job,name,group"
        )
    return found


def _row_of(report: dict[str, Any], number: int) -> dict[str, Any]:
    found = next((row for row in _jobs(report) if row["job"] == number), None)
    if found is None:
        raise RefusedError(f"there is no job {number}. See: gpushare status")
    return found


def _find_job(answers: list[Answer], job: str) -> tuple[int, list[str]]:
    """The number of the job with this number or name, and its coordinator's sockets."""
    if is_number(job):
        found = [(int(job), each) for each in answers if _has_job(each.report, int(job))]
        # It may be one that the report had no room for: the coordinator knows.
        left_out = [each for each in answers if each.report.get("jobs_left_out")]
        found = found or [(int(job), each) for each in left_out[:1]]
        if not found:
            raise RefusedError(f"there is no job {job}. See: gpushare status")
    else:
        found = [
            (int(row["job"]), each)
            for each in answers
            for row in _jobs(each.report)
            if row["name"] == job
        ]
    devices = list(dict.fromkeys(each.sockets.device for _, each in found))
    if len(devices) > 1:
        raise typer.BadParameter(f"job {job} is on {' and on '.join(devices)}: say --device")
    if len(found) == 1:
        return found[0][0], found[0][1].sockets.paths
    if found:
        numbers = ", ".join(str(number) for number, _ in found)
        raise typer.BadParameter(f"jobs {numbers} are named {job}: say which number")
    if job.startswith(GROUP_MARK):
        raise typer.BadParameter(
            f"{job}: this command takes one job, and no group; its jobs are listed by gpushare ps "
            f"--group {job.removeprefix(GROUP_MARK)}"
        )
    raise RefusedError(
        f"no job is named {job}{_starting_text(answers, 'name')}. See: gpushare status"
    )


def _starting_text(answers: list[Answer], what: str) -> str:
    """Says that the name or group may come yet: a process has it from its first model on."""
    rows = [row for each in answers for row in _jobs(each.report)]
    count = sum(row["state"] == "starting" for row in rows)
    if not count:
        return ""
    if count == 1:
        return f"; 1 job still starts and has no {what} yet"
    return f"; {count} jobs still start and have no {what} yet"


def _has_job(report: dict[str, Any], number: int) -> bool:
    return any(row["job"] == number for row in _jobs(report))


def _jobs(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for device in report["devices"] for row in device["jobs"]]
