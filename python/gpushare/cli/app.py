"""The command line as typer sees it: subcommands, options, help."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer

from gpushare.cli._targets.completion import completed_command
from gpushare.cli.exit_code import ExitCode
from gpushare.cli.version import version_text
from gpushare.printable import printable

COMMANDS = (
    "run",
    "status",
    "ps",
    "top",
    "why",
    "history",
    "report",
    "usage",
    "set",
    "pause",
    "resume",
    "policy",
    "limit",
    "coordinator",
    "admin",
    "verify",
    "simulate",
    "demo",
    "doctor",
    "exporter",
    "dashboard",
    "trace",
    "slurm",
    "k8s",
    "ray",
    "version",
)
"""Subcommands in the order of the help; each is a module of this package with ``add_to(app)``."""


_USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
"""typer has it from the package click, or from a copy of its own, and does not export it."""

_EXTRA_ARGUMENTS = "Got unexpected extra argument"
"""How typer's text begins when there are too many."""
_OF_ONE_JOB = dict.fromkeys(("pause", "resume", "set"), " or @GROUP") | {"why": ""}
"""Commands about one job, and what else they take in its place."""


def make_app(commands: tuple[str, ...] = COMMANDS) -> typer.Typer:
    """Builds the command line with some of the subcommands.

    Args:
        commands: Names out of ``COMMANDS``; only their modules are imported.

    Returns:
        The application, without running it.
    """
    app = typer.Typer(
        name="gpushare",
        help="Several PyTorch jobs share one device, iteration by iteration.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    # A callback keeps typer from taking a single subcommand for the whole program.
    @app.callback()
    def _root(
        version: Annotated[
            bool,
            typer.Option(
                "--version",
                callback=_show_version,
                is_eager=True,
                help="Print the version of gpushare.",
            ),
        ] = False,
        no_color: Annotated[
            bool, typer.Option("--no-color", help="No colours; also after the command's name.")
        ] = False,
    ) -> None:
        pass

    for name in commands:
        importlib.import_module(f"gpushare.cli.{name}").add_to(app)
    return app


def run_app(arguments: list[str]) -> int:
    """Parses arguments and runs the subcommand that they name.

    Args:
        arguments: Those of the command line, without the program's name.

    Returns:
        The exit code. What is wrong with the arguments is said in one line.
    """
    asked = arguments[0] if arguments else completed_command()
    app = make_app((asked,) if asked in COMMANDS else COMMANDS)
    command = typer.main.get_command(app)
    try:
        code = command.main(arguments, prog_name="gpushare", standalone_mode=False)
    except _USAGE_ERROR as error:
        text = _usage_text(error, asked)
        if text:
            print(f"gpushare: {text}", file=sys.stderr)
        return ExitCode.USAGE
    return int(code or ExitCode.OK)


def _usage_text(error: Any, asked: str) -> str:
    """One line; "" where a group of commands was called without one, and its help was shown."""
    if isinstance(error, typer.BadParameter) and error.param is None:
        # Raised by a subcommand: its words are whole sentences.
        text = f"{error.param_hint or ''} {error.message}"
    else:
        # What does not fit a list of words is an error of Python's in typer's words.
        text = error.format_message().replace(": Value error, ", ": ")
    if not text:
        return ""
    if text.startswith(_EXTRA_ARGUMENTS) and asked in _OF_ONE_JOB:
        extra = text.rpartition("(")[2].rstrip(").")
        text = f"{asked} takes one job{_OF_ONE_JOB[asked]}, not {extra} too"
    command = error.ctx.command_path if error.ctx else f"gpushare {asked}"
    end = "" if text.endswith((".", "?")) else "."
    return f"{printable(' '.join(text.split()))}{end} See: {command} --help"


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(version_text())
        raise typer.Exit
