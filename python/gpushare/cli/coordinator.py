"""``gpushare coordinator start|stop|log``, by hand what jobs do by themselves."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gpushare._coordinator.client import CoordinatorClient, RefusedError
from gpushare._settings import config
from gpushare._settings.config_notes import user_notes
from gpushare._settings.devices import (
    ANY,
    AUTO,
    CPU,
    CUDA,
    CUDA_PREFIX,
    device_of_socket,
    shown_wish,
)
from gpushare._settings.nvml import list_gpus
from gpushare._settings.settings import POLICIES
from gpushare.cli._options.settings import check_settings, to_environment
from gpushare.cli._options.start_checks import check_start
from gpushare.cli._targets.completion import complete_policies
from gpushare.cli._targets.coordinators import (
    DeviceSockets,
    ask_each,
    find_sockets,
    find_whole,
    named_device,
)
from gpushare.cli._targets.option import DeviceOption
from gpushare.cli.exit_code import ExitCode
from gpushare.cli.units import format_bytes
from gpushare.errors import ConfigError, CoordinatorUnreachable, GpushareError
from gpushare.printable import printable

LOG_NAME = "coordinator.log"
"""Beside the socket, of the CPU; ``gpushared --daemonize`` writes it there."""

_FOLLOW_SECONDS = 0.2
_MOST_LINE = 65536


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
    device: Annotated[
        str | None,
        typer.Option(help="cpu, cuda (all GPUs together), or cuda:UUID as nvidia-smi -L says."),
    ] = None,
    capacity: Annotated[str | None, typer.Option(help="Device memory for all jobs.")] = None,
    policy: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(POLICIES)}.", autocompletion=complete_policies),
    ] = None,
    min_quantum: Annotated[str | None, typer.Option(help="The shortest lease, as 250ms.")] = None,
    max_wait: Annotated[
        str | None, typer.Option(help="How long the last in line should wait for a turn, as 10s.")
    ] = None,
    memory_wait: Annotated[
        str | None,
        typer.Option(help="How long an allocation waits for room before it fails, as 10min."),
    ] = None,
    switch_loss: Annotated[
        float | None, typer.Option(help="The part of the time that switching may cost.")
    ] = None,
    num_lanes: Annotated[
        int | None, typer.Option(help="How many jobs may run at the same time, if they fit.")
    ] = None,
    host_budget: Annotated[
        str | None, typer.Option(help="The most that may be spilled to host memory.")
    ] = None,
    host_ram_budget: Annotated[
        str | None, typer.Option(help="The part of it that is used in RAM before the spill folder.")
    ] = None,
    spill_dir: Annotated[
        str | None, typer.Option(help="A folder where spilled memory goes; empty for RAM.")
    ] = None,
    linger: Annotated[
        str | None,
        typer.Option(
            help="How long to stay after the last job, as 10s, or never. By default never, unless "
            "GPUSHARE_LINGER or a file says it."
        ),
    ] = None,
) -> None:
    """Start a coordinator in the background; it stays until it is stopped."""
    options = {
        "socket": socket,
        "device": device,
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
    settings = check_settings(environment)
    for note in user_notes(environment):
        print(f"gpushare: {note}", file=sys.stderr)
    if settings.linger_seconds is None:
        settings = replace(settings, linger_seconds=math.inf)
    shown = f"--device {device}" if device else shown_wish(settings.device)
    name, arguments = _device_to_share(settings, shown)
    check_start(settings, name, options)
    path = _socket_to_listen_at(settings, name)
    _refuse_if_one_answers(path)
    command = [_daemon_program(), "--daemonize", "--socket", path, *arguments]
    code = subprocess.run(command, check=False).returncode
    if code != 0:  # the daemon has said why
        raise typer.Exit(ExitCode.USAGE if code == ExitCode.USAGE else ExitCode.ERROR)
    print(f"coordinator of {_devices_text(CoordinatorClient([path]).status())} listens at {path}")


def stop(
    force: Annotated[
        bool, typer.Option("--force", help="Stop also while jobs are connected; they go on.")
    ] = False,
    device: DeviceOption = "",
) -> None:
    """Stop the coordinator of each device; exit 4 if one has jobs and is not forced."""
    refusals = []

    def stop_one(client: CoordinatorClient) -> dict[str, Any]:
        try:
            return client.stop(force=force)
        except RefusedError as error:
            refusals.append(error)
            return {}

    answers = ask_each(find_whole(config.load(), device), stop_one)
    for answer in answers:
        if answer.report:
            of = f" of {answer.sockets.device}" if len(answers) > 1 else ""
            print(f"coordinator{of} stopped")
    if refusals:
        raise refusals[0]


def log(
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on to print what is added.")
    ] = False,
    device: DeviceOption = "",
) -> None:
    """Print the log of the coordinator that was last started in the background."""
    sockets = find_sockets(config.load(), device)
    if not config.load().socket and (device == CUDA or device.startswith(CUDA_PREFIX)):
        # The coordinator of all GPUs may have ended, and its socket with it.
        sockets.append(DeviceSockets(CUDA, config.own_socket_paths(config.load(), CUDA)))
    tried = [(each.device, log_path(path)) for each in sockets for path in each.paths]
    found: dict[str, Path] = {}
    try:
        for each, path in tried:
            if path.is_file():
                found.setdefault(each, path)
        if len(found) != 1:
            raise GpushareError(_not_one_log(found, [path for _, path in tried]))
        for text in read_log(*found.values(), follow=follow):
            print(text, end="", flush=follow)
    except PermissionError as error:
        raise GpushareError(
            f"cannot read {error.filename}: permission denied. A coordinator's log is for its own "
            "user and root"
        ) from error
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.OK) from None


def read_log(path: Path, *, follow: bool) -> Iterator[str]:
    """Yields a log's text, and with ``follow`` what is added to it, without end."""
    with path.open(errors="replace") as file:
        while True:
            # In parts: another program may have written the file, with lines of any length.
            text = file.readline(_MOST_LINE)
            if text:
                line = text.removesuffix("\n")
                yield printable(line) + text[len(line) :]
            elif not follow:
                return
            else:
                time.sleep(_FOLLOW_SECONDS)


def log_path(socket_path: str) -> Path:
    """Returns where the coordinator of a socket logs, as ``csrc/daemon/config/paths.h`` has it."""
    socket = Path(socket_path)
    return socket.with_suffix(".log") if device_of_socket(socket.name) else socket.parent / LOG_NAME


def _not_one_log(found: dict[str, Path], tried: list[Path]) -> str:
    if found:
        devices = ", ".join(f"{device} ({path})" for device, path in found.items())
        return f"there are logs of several coordinators: {devices}. Say --device"
    text = ", ".join(map(str, tried)) or "nothing, no coordinator is configured"
    is_service_here = any(
        path.parent == Path(config.SYSTEM_FOLDER) and path.parent.is_dir() for path in tried
    )
    journal = ". The log of this machine's service: journalctl -u 'gpushared@*'"
    return f"there is no log. Tried: {text}{journal if is_service_here else ''}"


def _device_to_share(settings: config.Config, shown: str) -> tuple[str, list[str]]:
    """Returns what the coordinator is to have, and the options that say so.

    Raises:
        ConfigError: It is a word that only a job understands, or there is no GPU.
    """
    if settings.device == CUDA:
        gpus = [(gpu.device, gpu.memory_bytes) for gpu in list_gpus()]
        if not gpus:
            raise ConfigError(
                f"{shown}: NVML, the driver's library, shows no GPU here, or one that is divided "
                "(MIG). Say cuda:UUID as nvidia-smi -L does"
            )
        return CUDA, config.daemon_args_of_gpus(settings, gpus)
    is_open = settings.device in {AUTO, ANY}
    name = CPU if is_open else named_device(settings.device, shown)
    return name, config.daemon_args(settings, name)


def _socket_to_listen_at(settings: config.Config, device_name: str) -> str:
    paths = config.own_socket_paths(settings, device_name)
    if not paths:
        raise typer.BadParameter('the settings say socket = "none": no coordinator is to be used')
    return paths[-1]


def _refuse_if_one_answers(path: str) -> None:
    """Says that a running coordinator keeps its settings, whatever this command was told."""
    try:
        report = CoordinatorClient([path]).status()
    except CoordinatorUnreachable:
        return
    raise RefusedError(
        f"a coordinator of {_devices_text(report)} answers at {path} already, and keeps the "
        "settings that it was started with. To start one with other settings, first: "
        "gpushare coordinator stop"
    )


def _devices_text(report: dict[str, Any]) -> str:
    """Returns "cpu (128.0 MiB)": each device, with the memory for all of its jobs."""
    return ", ".join(
        f"{row['device']} ({format_bytes(row['capacity_bytes'])})" for row in report["devices"]
    )


def _daemon_program() -> str:
    program = config.daemon_path()
    if not program:
        print("gpushare: gpushared is neither in this package nor on PATH", file=sys.stderr)
        raise typer.Exit(ExitCode.ERROR)
    return program
