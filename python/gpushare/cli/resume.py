"""``gpushare resume``: a paused job takes turns again."""

from __future__ import annotations

from typing import Annotated

import typer

from gpushare._settings.arguments import RESUMED
from gpushare.cli.jobs import change_job, label, print_json


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="resume")(resume)


def resume(
    job: Annotated[str, typer.Argument(help="The job's number, or its name.")],
    device: Annotated[str, typer.Option(help="The job is on this device.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the job's row as JSON.")] = False,
) -> None:
    """Let a paused job take turns again."""
    row = change_job(job, device, RESUMED)
    if as_json:
        print_json(row)
        return
    print(f"{label(row)}: resumed, {row['state']}")
