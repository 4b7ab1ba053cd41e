"""``gpushare pause``: a job, or each of a group, gets no lease until it is resumed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gpushare._settings.arguments import PAUSED
from gpushare.cli._targets.jobs import JOBS_HELP, change_jobs, label, print_json


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="pause")(pause)


def pause(
    job: Annotated[str, typer.Argument(help=JOBS_HELP)],
    device: Annotated[str, typer.Option(help="The job is on this device.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the job's row as JSON.")] = False,
) -> None:
    """Keep a running job off the device, from its next boundary on, until it is resumed."""
    change_jobs(job, device, PAUSED, print_json if as_json else _tell)


def _tell(row: dict[str, Any]) -> None:
    print(paused_text(row))


def paused_text(row: dict[str, Any]) -> str:
    """Returns what to say of a job that was just paused."""
    is_running = row["state"] in {"running", "closing"}
    return f"{label(row)}: paused{', from its next boundary on' if is_running else ''}"
