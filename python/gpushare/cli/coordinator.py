"""``gpushare coordinator start|stop|log``, by hand what jobs do by themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from gpushare import config
from gpushare.cli.exit_code import ExitCode
from gpushare.cli.setting_options import to_environment
from gpushare.coordinator_client import CoordinatorClient
from gpushare.errors import CoordinatorUnreachable

LOG_NAME = "coordinator.log"
"""Beside the socket; ``gpushared --daemonize`` writes it there."""

_FOLLOW_SECONDS = 0.2


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand and its own subcommands."""
    group = typer.Typer(
        help="Start, stop or read the log of the coordinator.", no_args_is_help=True
    )
    group.command(name="start")(start)
    group.command(name="stop")(stop)
    group.command(name="log")(log)
    app.add_typer(group, name="coordinator")


def start(  # noqa: PLR0917 - a parameter is an option; typer calls it by names
    socket: Annotated[str | None, typer.Option(help="Where to listen.")] = None,
    capacity: Annotated[str | None, typer.Option(help="Device memory for all jobs.")] = None,
    policy: Annotated[str | None, typer.Option(help="fair, rr or fifo.")] = None,
    min_quantum: Annotated[str | None, typer.Option(help="The shortest lease, as 250ms.")] = None,
    max_wait: Annotated[str | None, typer.Option(help="The ceiling on waiting.")] = None,
    memory_wait: Annotated[
        str | None, typer.Option(help="How long to wait for room before out of memory.")
    ] = None,
    switch_loss: Annotated[
        float | None, typer.Option(help="The part of the time that switching may cost.")
    ] = None,
    num_lanes: Annotated[
        int | None, typer.Option(help="How many jobs may run at the same time, if they fit.")
    ] = None,
    host_budget: Annotated[str | None, typer.Option(help="The most that may be spilled.")] = None,
    host_ram_budget: Annotated[
        str | None, typer.Option(help="Of it, in RAM before the spill folder is used.")
    ] = None,
    spill_dir: Annotated[
        str | None, typer.Option(help="A folder where spilled memory goes; empty for RAM.")
    ] = None,
    linger: Annotated[
        str | None, typer.Option(help='How long to stay after the last job, or "never" to end.')
    ] = "never",
) -> None:
    """Start a coordinator in the background; it stays until it is stopped."""
    options = {
        "socket": socket,
        "capacity_bytes": capacity,
        "policy": policy,
        "min_quantum_seconds": min_quantum,
        "max_wait_seconds": max_wait,
        "memory_wait_seconds": memory_wait,
        "switch_loss": switch_loss,
        "num_lanes": num_lanes,
        "host_budget_bytes": host_budget,
        "host_ram_budget_bytes": host_ram_budget,
        "spill_dir": spill_dir,
        "linger_seconds": linger,
    }
    try:
        environment = {**os.environ, **to_environment(options)}
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    settings = config.load(environment)
    path = _socket_to_listen_at(settings)
    if _answers(path):
        print(f"gpushare: a coordinator answers at {path} already", file=sys.stderr)
        raise typer.Exit(ExitCode.REFUSED)
    command = [_daemon_program(), "--daemonize", "--socket", path, *config.daemon_args(settings)]
    if subprocess.run(command, check=False).returncode != 0:
        raise typer.Exit(ExitCode.ERROR)
    print(f"coordinator listens at {path}")


def stop(
    force: Annotated[
        bool, typer.Option("--force", help="Also while jobs are connected; they go on.")
    ] = False,
) -> None:
    """Stop the coordinator; exit 4 if it has jobs and is not forced."""
    CoordinatorClient(config.socket_paths(config.load())).stop(force=force)
    print("coordinator stopped")


def log(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print what is added.")] = False,
) -> None:
    """Print the log of the coordinator that was last started in the background."""
    paths = [Path(path).parent / LOG_NAME for path in config.socket_paths(config.load())]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        tried = ", ".join(map(str, paths)) or "nothing, no coordinator is configured"
        print(f"gpushare: there is no log. Tried: {tried}", file=sys.stderr)
        raise typer.Exit(ExitCode.ERROR)
    try:
        for text in read_log(path, follow=follow):
            print(text, end="", flush=follow)
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.OK) from None


def read_log(path: Path, *, follow: bool) -> Iterator[str]:
    """Yields a log's text, and with ``follow`` what is added to it, without end."""
    with path.open(errors="replace") as file:
        while True:
            text = file.read()
            if text:
                yield text
            elif not follow:
                return
            else:
                time.sleep(_FOLLOW_SECONDS)


def _socket_to_listen_at(settings: config.Config) -> str:
    paths = config.socket_paths(settings)
    if not paths:
        raise typer.BadParameter('the settings say socket = "none": no coordinator is to be used')
    return paths[-1]


def _answers(path: str) -> bool:
    try:
        CoordinatorClient([path]).status()
    except CoordinatorUnreachable:
        return False
    return True


def _daemon_program() -> str:
    program = config.daemon_path()
    if not program:
        print("gpushare: gpushared is neither in this package nor on PATH", file=sys.stderr)
        raise typer.Exit(ExitCode.ERROR)
    return program
