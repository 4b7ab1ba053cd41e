"""Bars and curves made of characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpushare.cli.top.line import Line, Span

if TYPE_CHECKING:
    from collections.abc import Sequence


class Glyphs(NamedTuple):
    """The characters that a terminal can show."""

    steps: str
    """Of a curve, the lowest first."""
    own: str
    """Of a bar: memory of the jobs that run."""
    others: str
    """Of a bar: memory of the other jobs."""
    shared: str
    """Of a bar: memory that jobs share."""
    free: str
    """Of a bar: the rest."""


UNICODE = Glyphs("▁▂▃▄▅▆▇█", "█", "▓", "▒", "░")
ASCII = Glyphs("_.:-=+*#", "#", "=", "+", ".")


def glyphs_for(encoding: str | None) -> Glyphs:
    """Returns those that an output of this encoding can show."""
    try:
        "".join(UNICODE).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


class Part(NamedTuple):
    """A part of a bar."""

    size: float
    """In the unit of the whole."""
    glyph: str
    look: str = ""


def bar(parts: Sequence[Part], whole: float, width: int, rest: Part) -> Line:
    """Returns a bar of that many places; a part that is not empty has one place at least.

    Args:
        parts: From the left.
        whole: What the bar stands for; 0 where it is not known.
        width: In places of the terminal.
        rest: How what no part takes looks.
    """
    spans = []
    left = width
    for part in parts:
        exact = part.size / whole * width if whole > 0 else 0
        taken = min(left, max(round(exact), 1 if part.size > 0 else 0))
        if taken:
            spans.append(Span(part.glyph * taken, part.look))
        left -= taken
    return (*spans, Span(rest.glyph * left, rest.look)) if left else tuple(spans)


def curve(values: Sequence[float | None], top: float, width: int, glyphs: Glyphs) -> str:
    """Returns a curve of that many places, its newest value at the right.

    Args:
        values: The newest last; None where nothing is known.
        top: What the highest step stands for; 0 for the largest of the values.
        width: In places of the terminal.
        glyphs: Their steps are used.
    """
    shown = list(values)[-width:] if width > 0 else []
    highest = top or max((value for value in shown if value is not None), default=0.0)
    last = len(glyphs.steps) - 1
    steps = [
        " "
        if value is None
        else glyphs.steps[min(last, round(value / highest * last)) if highest > 0 else 0]
        for value in shown
    ]
    return " " * (width - len(steps)) + "".join(steps)
