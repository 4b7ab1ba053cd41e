"""``gpushare limit``: how much a job may hold, changed while it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from gpushare._settings.arguments import job_changes
from gpushare.cli._targets.completion import complete_own_jobs
from gpushare.cli._targets.jobs import change_job, label
from gpushare.cli.units import format_bytes


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="limit")(limit)


def limit(
    job: Annotated[
        str, typer.Argument(help="The job's number, or its name.", autocompletion=complete_own_jobs)
    ],
    size: Annotated[str, typer.Argument(help='The most device memory, as 1.5GiB, or "none".')],
    device: Annotated[str, typer.Option(help="The job is on this device.")] = "",
) -> None:
    """Limit what a running job may hold; what it has beyond that goes back to the others."""
    try:
        changes = job_changes(memory_limit=size)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    row = change_job(job, device, changes)
    size_bytes = changes["memory_limit_bytes"]
    said = f"at most {format_bytes(size_bytes)}" if size_bytes else "no limit"
    print(f"{label(row)}: {said}, it holds {format_bytes(row['room_bytes'])} now")
