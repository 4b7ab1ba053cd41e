"""``gpushare demo``: three training jobs on one device, in scenes that can be compared."""

from __future__ import annotations

import json
import signal
import sys
from typing import Annotated

import typer

from gpushare.cli._screen.terminal import screen_width, show
from gpushare.cli.exit_code import INTERRUPTED, ExitCode


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="demo")(demo)


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller jobs, for a first look.")] = False,
) -> None:
    """Train three models in six ways, and show what sharing does: time, memory, equal bits.

    The exit code is about proofs, not about speed: 1 if results differ, memory exceeded the budget
    or nothing was spilled.
    """
    # Only here: other subcommands need not wait for rich.
    from rich.console import Console

    from gpushare.demo.director import run_demo
    from gpushare.demo.table import introduction, make_console, report_lines

    # A demo that is told to end takes its jobs and its coordinator along, as with Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    console = Console(stderr=True) if as_json else make_console()
    if not as_json:
        show(introduction(screen_width(), is_quick=quick))
    try:
        report = run_demo(console, is_quick=quick)
    except KeyboardInterrupt:
        print(
            "gpushare: demo interrupted; its jobs and its coordinator have ended", file=sys.stderr
        )
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print(json.dumps(report.to_json()))
    else:
        show(report_lines(report, screen_width()))
    if not report.is_proven:
        raise typer.Exit(ExitCode.ERROR)
