"""``gpushare trace``: a timeline of leases, waits and memory, for Perfetto to show."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from gpushare._settings import config
from gpushare.cli._targets.coordinators import ask_each, find_sockets
from gpushare.cli._targets.option import DeviceOption
from gpushare.cli.trace import merge as merging
from gpushare.cli.trace.record import Recording
from gpushare.printable import printable


def add_to(app: typer.Typer) -> None:
    """Adds the subcommands."""
    group = typer.Typer(help="Record a timeline of what jobs do.", no_args_is_help=True)
    group.command(name="record")(record)
    group.command(name="merge")(merge)
    app.add_typer(group, name="trace")


def record(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    seconds: Annotated[float, typer.Option(help="How long.", min=0.1, max=3600)] = 10.0,
    device: DeviceOption = "",
) -> None:
    """Watch the coordinators, then write a file that ui.perfetto.dev opens. Ctrl-C ends earlier."""
    sockets = find_sockets(config.load(), device)
    first = ask_each(sockets)
    with output.open("w", encoding="utf-8") as file:
        recording = Recording()
        recording.run(sockets, first, seconds)
        json.dump(recording.trace(), file)
    if recording.why_ended:
        print(f"gpushare: ended early: {printable(recording.why_ended)}", file=sys.stderr)
    slices = [e for t in recording.tracks.values() for e in t.events if e.kind == "slice"]
    num_leases = sum(each.name == "lease" for each in slices)
    missing = ""
    if recording.num_gaps:
        missing = f"; {recording.num_gaps} times decisions came too fast to see all of them"
    print(f"{output}: {num_leases} leases{missing}. Open it at https://ui.perfetto.dev")


def merge(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files of `gpushare trace record` and of torch.profiler, also .gz."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
) -> None:
    """Put a recorded trace and profiles of torch on one clock, in one file."""
    merged = merging.merge([merging.read(path) for path in files])
    with output.open("w", encoding="utf-8") as file:
        json.dump(merged, file)
    num_events = len(merged["traceEvents"])
    print(
        f"{output}: {num_events} events of {len(files)} files. Open it at https://ui.perfetto.dev"
    )
