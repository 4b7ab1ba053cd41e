"""``gpushare run -- COMMAND``: an unmodified program as a job.

The program replaces this process, so signals, exit code and terminal are its own. What turns it
into a job is its environment: GPUSHARE_* settings, and a ``sitecustomize`` at the front of
PYTHONPATH.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from gpushare.cli._options.environment import make_environment
from gpushare.cli._options.settings import check_settings
from gpushare.cli._targets.completion import complete_priorities
from gpushare.cli.exit_code import COMMAND_NOT_FOUND, ExitCode


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    # What stands after the command's name belongs to the command, also without "--".
    app.command(name="run", context_settings={"allow_interspersed_args": False})(run)


def run(  # noqa: PLR0917 - a parameter is an option; typer calls it by names
    command: Annotated[list[str], typer.Argument(help="The program and its arguments.")],
    name: Annotated[
        str | None,
        typer.Option(help="The name by which commands find the job; by default the script's."),
    ] = None,
    group: Annotated[str | None, typer.Option(help="A name for jobs that belong together.")] = None,
    priority: Annotated[
        str | None,
        typer.Option(
            help="guaranteed, interactive, normal or opportunistic.",
            autocompletion=complete_priorities,
        ),
    ] = None,
    weight: Annotated[
        float | None,
        typer.Option(help="The share among the user's jobs of that priority; above 0."),
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="The most device memory of this job, as 2GiB.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="How long an iteration may take, waiting included, as 50ms.")
    ] = None,
    share_limit: Annotated[
        str | None, typer.Option(help="The most of the device's time, 0.01 to 1.")
    ] = None,
    elastic_limits: Annotated[
        bool | None,
        typer.Option(
            "--elastic-limits/--hard-limits",
            help="Whether both limits give way while no other job wants the rest.",
        ),
    ] = None,
    elastic_threads: Annotated[
        bool | None,
        typer.Option(
            "--elastic-threads/--no-elastic-threads",
            help="Use fewer CPU threads beside other jobs; last bits may differ.",
        ),
    ] = None,
    sm_share: Annotated[
        str | None,
        typer.Option(help="Under MPS: the part of the GPU's multiprocessors, 0.01 to 1."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="The device to share: auto, any, cpu, cpu:1, cuda, cuda:1, cuda:UUID."),
    ] = None,
    capacity: Annotated[
        str | None,
        typer.Option(help="Device memory for all jobs, if this one starts the coordinator."),
    ] = None,
    require: Annotated[
        bool | None,
        typer.Option(
            "--require/--no-require", help="End with exit code 3 rather than run without turns."
        ),
    ] = None,
) -> None:
    """Run a training program, unchanged, as a job that shares the device."""
    options = {
        "name": name,
        "group": group,
        "priority": priority,
        "weight": weight,
        "memory_limit_bytes": memory_limit,
        "deadline_seconds": deadline,
        "share_limit": share_limit,
        "elastic_limits": elastic_limits,
        "elastic_threads": elastic_threads,
        "sm_share": sm_share,
        "device": device,
        "capacity_bytes": capacity,
        "require": require,
    }
    try:
        environment = make_environment(options, os.environ)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    settings = check_settings(environment)
    check_command(command, is_required=settings.require)
    sys.stdout.flush()
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        print(f"gpushare: cannot run {command[0]}: {_why_not(error)}", file=sys.stderr)
        raise typer.Exit(ExitCode.ERROR) from error


def _why_not(error: OSError) -> str:
    """Why a program that is there cannot be run. The kernel's own words mislead in two cases."""
    if error.errno == errno.ENOENT:
        return "the interpreter that its first line names is not there"
    if error.errno == errno.ENOEXEC:
        return "it is no program for this machine, and no script that names its interpreter"
    return str(error.strerror)


def check_command(command: list[str], *, is_required: bool) -> None:
    """Ends with a clear message if a command cannot be run, and warns if it cannot be a job.

    Args:
        command: The program and its arguments.
        is_required: It is not to run if it cannot be a job.

    Raises:
        typer.Exit: With ``COMMAND_NOT_FOUND``, or ``UNREACHABLE`` where a job is required.
    """
    program = command[0]
    if shutil.which(program) is None:
        hint = ""
        if program.endswith(".py") and Path(program).is_file():
            hint = f". A script needs its Python: gpushare run -- python {' '.join(command)}"
        print(f"gpushare: {program}: command not found{hint}", file=sys.stderr)
        raise typer.Exit(COMMAND_NOT_FOUND)
    if Path(program).name.startswith("python") and ignores_environment(command[1:]):
        what = "Python's options -E, -I and -S keep gpushare from being started"
        if is_required:
            print(
                f"gpushare: {what}, and GPUSHARE_REQUIRE is set: leave the option out. A program "
                "that imports gpushare itself needs no gpushare run",
                file=sys.stderr,
            )
            raise typer.Exit(ExitCode.UNREACHABLE)
        print(
            f"gpushare: {what}; this program runs unmanaged unless it imports gpushare itself",
            file=sys.stderr,
        )


def ignores_environment(arguments: list[str]) -> bool:
    """Tells whether Python, called with these arguments, skips PYTHONPATH or sitecustomize."""
    rest = iter(arguments)
    for argument in rest:
        if argument in {"-X", "-W"}:
            next(rest, None)
            continue
        if not argument.startswith("-") or argument in {"-", "-m", "-c"}:
            return False
        if re.fullmatch("-[bBdEiIOPqsSuvx]+", argument) and set(argument) & set("EIS"):
            return True
    return False
