"""Prints lines: coloured and as wide as the terminal, or plain and whole where there is none."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpushare.cli._screen.line import Line, plain

if TYPE_CHECKING:
    from rich.text import Text

_LEAST_WIDTH = 20
"""Of a narrower terminal, lines are broken by the terminal itself."""
NO_COLOR = "NO_COLOR"
"""The variable that all programs know (https://no-color.org); rich and typer read it, too."""


def screen_width() -> int | None:
    """Returns how many places a line of the terminal has; None where output goes elsewhere.

    ``COLUMNS`` is believed, as by other programs.
    """
    if not sys.stdout.isatty():
        return None
    return max(shutil.get_terminal_size().columns, _LEAST_WIDTH)


def show(lines: Iterable[Line]) -> None:
    """Prints lines on standard output."""
    if not sys.stdout.isatty() or os.environ.get(NO_COLOR):
        print(plain(lines), flush=True)
        return
    from rich.console import Console

    console = Console(highlight=False)
    for line in lines:
        console.print(styled(line), soft_wrap=True)


def styled(line: Line) -> Text:
    """Returns a line as rich prints it."""
    from rich.text import Text

    return Text.assemble(*line, no_wrap=True)
