"""``gpushare version``: which gpushare, which Python."""

from __future__ import annotations

import json
import platform
import sys
from typing import Annotated

import typer

from gpushare.version import __version__


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="version")(show_version)


def show_version(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Print the versions of gpushare and Python."""
    if as_json:
        report = {
            "schema_version": 1,
            "version": __version__,
            "python": platform.python_version(),
            "executable": sys.executable,
        }
        print(json.dumps(report))
        return
    print(version_text())


def version_text() -> str:
    """Returns what ``gpushare version`` prints."""
    return f"gpushare {__version__} (Python {platform.python_version()})"
