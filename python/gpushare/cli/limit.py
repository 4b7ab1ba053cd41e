"""``gpushare limit``: how much a job may hold, changed while it runs."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from gpushare import config
from gpushare.cli.coordinators import Answer, ask_each, find_sockets
from gpushare.cli.exit_code import ExitCode
from gpushare.cli.units import format_bytes
from gpushare.coordinator_client import CoordinatorClient, RefusedError
from gpushare.quantities import parse_bytes

_NO_LIMIT = "none"


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="limit")(limit)


def limit(
    job: Annotated[str, typer.Argument(help="The job's number, or its name.")],
    size: Annotated[str, typer.Argument(help='As "1.5GiB", or "none".')],
    device: Annotated[str, typer.Option(help="The job is on this device.")] = "",
) -> None:
    """Limit what a running job may hold; what it has beyond that goes back to the others."""
    answers = ask_each(find_sockets(config.load(), device))
    try:
        size_bytes = 0 if size == _NO_LIMIT else parse_bytes(size)
        number, paths = _find_job(answers, job)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    try:
        report = CoordinatorClient(paths).set_limit(number, size_bytes)
    except RefusedError as error:
        print(f"gpushare: {error}", file=sys.stderr)
        raise typer.Exit(ExitCode.REFUSED) from error
    row = next(row for row in _jobs(report) if row["job"] == number)
    said = format_bytes(size_bytes) if size_bytes else "no limit"
    print(f"job {number} ({row['name']}): {said}, it holds {format_bytes(row['room_bytes'])} now")


def _find_job(answers: list[Answer], job: str) -> tuple[int, list[str]]:
    """The number of the job with this number or name, and its coordinator's sockets.

    ValueError if it is none, or several.
    """
    if job.isdecimal():
        found = [(int(job), each) for each in answers if _has_job(each.report, int(job))]
        # Nobody's: the coordinator says so.
        found = found or [(int(job), answers[0])]
    else:
        found = [
            (int(row["job"]), each)
            for each in answers
            for row in _jobs(each.report)
            if row["name"] == job
        ]
    devices = list(dict.fromkeys(each.sockets.device for _, each in found))
    if len(devices) > 1:
        raise ValueError(f"job {job} is on {' and on '.join(devices)}: say --device")
    if len(found) == 1:
        return found[0][0], found[0][1].sockets.paths
    if found:
        numbers = ", ".join(str(number) for number, _ in found)
        raise ValueError(f"jobs {numbers} are named {job}: say which number")
    raise ValueError(f"no job is named {job}. See: gpushare status")


def _has_job(report: dict[str, Any], number: int) -> bool:
    return any(row["job"] == number for row in _jobs(report))


def _jobs(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for device in report["devices"] for row in device["jobs"]]
