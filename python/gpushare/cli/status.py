"""``gpushare status``: who has the device, who waits for whom, and where the bytes are."""

from __future__ import annotations

from typing import Annotated

import typer

from gpushare.cli._status.options import LEAST_WATCH_SECONDS, StatusOptions
from gpushare.cli._status.show import show_status
from gpushare.cli._targets.option import DeviceOption


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand. Its plain forms are answered before typer: see ``main``."""
    app.command(name="status")(status)


def status(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object; with --watch one a line.")
    ] = False,
    memory: Annotated[
        bool, typer.Option("--memory", help="Show where each job's bytes are, and what was moved.")
    ] = False,
    unmanaged: Annotated[
        bool, typer.Option("--unmanaged", help="List the processes that are no jobs, too.")
    ] = False,
    watch: Annotated[
        float | None,
        typer.Option(help="Repeat every so many seconds; q ends it.", min=LEAST_WATCH_SECONDS),
    ] = None,
    device: DeviceOption = "",
) -> None:
    """Show each device, the jobs that share it, and what each waits for. Exit 3: no coordinator."""
    show_status(
        StatusOptions(
            as_json=as_json,
            is_memory=memory,
            with_unmanaged=unmanaged,
            watch_seconds=watch,
            device=device,
        )
    )
