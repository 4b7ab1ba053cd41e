"""Lines of text whose pieces may have a style, and how long texts are broken.

Nothing here imports rich, so that a command whose output is no terminal starts quickly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpushare.cli._status.table import GAP, pad, places, take
from gpushare.printable import printable

_BETWEEN_WORDS = re.compile(r"(?<!\d) | (?!(?:B|[KMG]iB|ns|us|ms|s|min|h|d)\b)")
"""A space, unless it stands between a figure and its unit."""
_INDENT = "  "


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    style: str = ""
    """As rich knows it, for example "bold red"; "" for none."""


Line = Sequence[Span]


def plain(lines: Iterable[Line]) -> str:
    """Returns the text of lines, without styles and without a newline at the end."""
    return "\n".join("".join(span.text for span in line) for line in lines)


def line_places(line: Line) -> int:
    """Returns how many places of the terminal a line takes."""
    return sum(places(span.text) for span in line)


def wrap(text: str, width: int | None, style: str = "", indent: str = _INDENT) -> list[Line]:
    """Breaks a text between words; a figure stays beside its unit.

    Args:
        text: Printable, without newlines.
        width: Places of a line; None for one line of any length.
        style: Of all of it.
        indent: Before each line but the first.
    """
    if width is None or places(text) <= width:
        return [[Span(text, style)]]
    lines, start = [], re.match(" *", text)
    line = start.group() if start else ""
    is_empty = True
    for word in _BETWEEN_WORDS.split(text.strip()):
        rest = word
        if not is_empty and places(f"{line} {rest}") > width:
            lines.append(line)
            line, is_empty = indent, True
        while places(line) + places(rest) > width:  # a word longer than a line
            # Where not even one wide character fits, it stands beyond the line's end.
            piece = take(rest, width - places(line)) or rest[:1]
            lines.append(line + piece)
            rest, line = rest[len(piece) :], indent
        line = line + rest if is_empty else f"{line} {rest}"
        is_empty = not rest
    if not is_empty:
        lines.append(line)
    return [[Span(each, style)] for each in lines]


def flow(parts: Sequence[Span], width: int | None, gap: str = "   ") -> list[Line]:
    """Puts parts one after the other, and goes on in a further line where they do not fit."""
    lines: list[list[Span]] = [[]]
    for part in parts:
        if not lines[-1]:
            lines[-1].append(part)
        elif width is None or line_places(lines[-1]) + len(gap) + places(part.text) <= width:
            lines[-1] += [Span(gap), part]
        else:
            lines.append([Span(_INDENT), part])
    return [short for line in lines for short in _broken(line, width)]


def fields(values: Sequence[tuple[str, object]], width: int | None) -> list[Line]:
    """Lays out a name and a value a line; a long value goes on below its beginning."""
    size = max(places(name) for name, _ in values)
    lines: list[Line] = []
    for name, value in values:
        room = None if width is None else max(width - size - len(GAP), 1)
        head = pad(name, size) + GAP
        for text in wrap(printable(str(value)), room, indent=""):
            lines.append([Span(head), *text])
            head = " " * (size + len(GAP))
    return lines


def _broken(line: Line, width: int | None) -> list[Line]:
    """The line; several where one part is longer than a line by itself."""
    if width is None or line_places(line) <= width:
        return [line]
    return wrap(plain([line]), width, line[-1].style)
