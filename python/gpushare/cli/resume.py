"""``gpushare resume``: a paused job, or each of a group, takes turns again."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gpushare._settings.arguments import RESUMED
from gpushare.cli._targets.jobs import JOBS_HELP, change_jobs, label, print_json


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="resume")(resume)


def resume(
    job: Annotated[str, typer.Argument(help=JOBS_HELP)],
    device: Annotated[str, typer.Option(help="The job is on this device.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the job's row as JSON.")] = False,
) -> None:
    """Let a paused job take turns again."""
    change_jobs(job, device, RESUMED, print_json if as_json else _tell)


def _tell(row: dict[str, Any]) -> None:
    print(resumed_text(row))


def resumed_text(row: dict[str, Any]) -> str:
    """Returns what to say of a job that was just resumed."""
    return f"{label(row)}: resumed, {row['state']}"
