"""Lines of the screen: spans of text, each with a word for how it looks.

The words become colours in ``board.py``; without them a line says the same. All text that comes
from other processes passes ``span`` or ``fit``, which make it printable.
"""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from gpushare.cli._status.table import pad, places, shorten, take
from gpushare.printable import printable


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    look: str = ""
    """One of ``gpushare.cli.top.board.LOOKS``, or ""."""


Line = tuple[Span, ...]


def span(text: str, look: str = "") -> Span:
    """Returns the text as a span, without what could steer the terminal."""
    return Span(printable(text), look)


def plain(line: Line) -> str:
    """Returns the line's text alone."""
    return "".join(each.text for each in line).rstrip()


def width_of(line: Line) -> int:
    """Returns how many places of the terminal the line takes."""
    return sum(places(each.text) for each in line)


def fit(text: str, width: int, *, is_right: bool = False) -> str:
    """Returns the text in that many places: with spaces, or with a "~" for its middle.

    Args:
        text: What may come from another process.
        width: In places of the terminal.
        is_right: Spaces stand before the text.
    """
    shown = shorten(text, width) if width > 0 else ""
    missing = " " * (width - places(shown))
    return missing + shown if is_right else shown + missing


def cut(line: Line, width: int) -> Line:
    """Returns the line with a "~" for what is beyond that many places."""
    kept: list[Span] = []
    left = width
    for each in line:
        needed = places(each.text)
        if needed > left:
            text = take(each.text, left - 1) + "~" if left > 0 else ""
            kept.append(each._replace(text=pad(text, left)))
            break
        kept.append(each)
        left -= needed
    return tuple(kept)


def fill(line: Line, width: int, look: str) -> Line:
    """Returns the line with spaces of that look up to that many places."""
    missing = width - width_of(line)
    return (*line, Span(" " * missing, look)) if missing > 0 else line


def spread(left: Line, right: Line, width: int) -> Line:
    """Returns both with spaces between, the right one at the end; without it if it has no room."""
    missing = width - width_of(left) - width_of(right)
    if missing < 2:
        return cut(left, width)
    return (*left, Span(" " * missing), *right)


def wrap(text: str, width: int, look: str = "") -> list[Line]:
    """Returns the text as lines of at most that many places, broken at spaces."""
    lines = textwrap.wrap(
        printable(text), max(width, 8), subsequent_indent="  ", break_on_hyphens=False
    )
    return [cut((Span(each, look),), width) for each in lines]
