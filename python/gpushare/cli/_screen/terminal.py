"""Prints lines: coloured and as wide as the terminal, or plain and whole where there is none."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpushare.cli._screen.line import Line, plain

if TYPE_CHECKING:
    from rich.text import Text

_LEAST_WIDTH = 20
"""Of a narrower terminal, lines are broken by the terminal itself."""
NO_COLOR = "NO_COLOR"
"""The variable that all programs know (https://no-color.org); rich and typer read it, too."""
_NO_COLOR_OPTION = "--no-color"
_OTHERS_WORDS = {"run", "verify", "--"}
"""What follows them may belong to another program."""


def screen_width() -> int | None:
    """Returns how many places a line of the terminal has; None where output goes elsewhere.

    ``COLUMNS`` is believed, as by other programs.
    """
    if not sys.stdout.isatty():
        return None
    return max(shutil.get_terminal_size().columns, _LEAST_WIDTH)


def has_own_screen() -> bool:
    """Whether the terminal can show a screen that goes away again."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in {"dumb", "unknown"}


def take_no_color(arguments: Sequence[str]) -> list[str]:
    """Does what ``--no-color`` asks for, wherever it stands, and returns the other arguments."""
    end = next((i for i, word in enumerate(arguments) if word in _OTHERS_WORDS), len(arguments))
    own = [word for word in arguments[:end] if word != _NO_COLOR_OPTION]
    if len(own) < end:
        os.environ[NO_COLOR] = "1"
    return [*own, *arguments[end:]]


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
