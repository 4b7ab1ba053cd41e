"""The command line as typer sees it: subcommands, options, help."""

from __future__ import annotations

import importlib

import typer

COMMANDS = (
    "run",
    "status",
    "why",
    "set",
    "pause",
    "resume",
    "policy",
    "limit",
    "coordinator",
    "verify",
    "simulate",
    "demo",
    "doctor",
    "version",
)
"""Subcommands in the order of the help; each is a module of this package with ``add_to(app)``."""


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
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    # A callback keeps typer from taking a single subcommand for the whole program.
    @app.callback()
    def _root() -> None:
        pass

    for name in commands:
        importlib.import_module(f"gpushare.cli.{name}").add_to(app)
    return app


def run_app(arguments: list[str]) -> None:
    """Parses arguments, runs the subcommand that they name, and exits."""
    asked = arguments[0] if arguments else ""
    app = make_app((asked,) if asked in COMMANDS else COMMANDS)
    app(arguments, prog_name="gpushare")
