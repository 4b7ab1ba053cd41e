"""``gpushare limit``: how much a job may hold, changed while it runs."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from gpushare import config
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
) -> None:
    """Limit what a running job may hold; what it has beyond that goes back to the others."""
    client = CoordinatorClient(config.socket_paths(config.load()))
    try:
        size_bytes = 0 if size == _NO_LIMIT else parse_bytes(size)
        number = _find_job(client.status(), job)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    try:
        report = client.set_limit(number, size_bytes)
    except RefusedError as error:
        print(f"gpushare: {error}", file=sys.stderr)
        raise typer.Exit(ExitCode.REFUSED) from error
    row = next(row for row in _jobs(report) if row["job"] == number)
    said = format_bytes(size_bytes) if size_bytes else "no limit"
    print(f"job {number} ({row['name']}): {said}, it holds {format_bytes(row['room_bytes'])} now")


def _find_job(report: dict[str, Any], job: str) -> int:
    """The number of the job with this number or name; ValueError if it is none, or several."""
    if job.isdecimal():
        return int(job)
    numbers = [int(row["job"]) for row in _jobs(report) if row["name"] == job]
    if len(numbers) == 1:
        return numbers[0]
    if numbers:
        raise ValueError(f"jobs {', '.join(map(str, numbers))} are named {job}: say which number")
    raise ValueError(f"no job is named {job}. See: gpushare status")


def _jobs(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for device in report["devices"] for row in device["jobs"]]
