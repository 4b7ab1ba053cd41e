"""The columns of the table: which there are at which width, and what each says of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpushare.cli.top.glyphs import Glyphs, curve
from gpushare.cli.top.history import SPAN_SECONDS, History
from gpushare.cli.top.line import Line, Span, fit
from gpushare.cli.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpushare.cli.top.rows import Row

GAP = 1
MOST_NAME = 24
_MOST_CURVE = 60


class Shown(NamedTuple):
    """What a cell is made of."""

    row: Row
    history: History
    glyphs: Glyphs


class Column(NamedTuple):
    """One column."""

    head: str
    width: int
    """The least, in places of the terminal."""
    from_width: int
    """Of the terminal: in narrower ones the column is left out."""
    text: Callable[[Shown, int], str]
    """The cell, given how wide the column is."""
    sort: str = ""
    """What it is sorted by: a column of ``gpushare ps``. "" where it cannot be."""
    is_right: bool = False
    most: int = 0
    """So wide it may become where there is room; 0: as wide as it is."""


def _of_job(text: Callable[[Shown], str]) -> Callable[[Shown, int], str]:
    """The text of jobs; a process that is no job has "-"."""
    return lambda shown, _: text(shown) if shown.row.is_job else "-"


def _ran(text: Callable[[Shown], str]) -> Callable[[Shown, int], str]:
    """The text of jobs that have done an iteration."""
    return _of_job(lambda shown: text(shown) if shown.row.fields["iterations"] else "-")


def _state(shown: Shown, _: int) -> str:
    fields = shown.row.fields
    waiting = fields.get("waiting_seconds", 0.0) if shown.row.is_job else 0.0
    return f"{fields['state']} {short_seconds(waiting)}" if waiting else str(fields["state"])


def _rate(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 0.1 else f"{value:.2g}"


def _alone(shown: Shown) -> str:
    fields = shown.row.fields
    # A coordinator of an earlier version says only what it does in a second of work.
    value = fields.get("iterations_per_second_alone", fields.get("iterations_per_busy_second", 0.0))
    return _rate(value)


def _curve(shown: Shown, width: int) -> str:
    rate = shown.history.rates.get(shown.row.key)
    return curve(rate.means.values() if rate else (), 0.0, width, shown.glyphs)


def _iterations(shown: Shown) -> str:
    done, total = shown.row.fields["iterations"], shown.row.fields.get("iterations_total", 0)
    return f"{done}/{total}" if total else str(done)


def _field(name: str) -> Callable[[Shown], str]:
    return lambda shown: str(shown.row.fields.get(name, "") or "-")


def _bytes(name: str) -> Callable[[Shown], str]:
    return lambda shown: format_bytes(shown.row.fields.get(name, 0))


def short_seconds(seconds: float) -> str:
    """Returns a time in few characters: "35 ms", "1.2 s", "72 s", "8 min"."""
    if seconds < 10:
        return format_seconds(seconds)
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


_DEVICE = Column("DEV", 3, 0, lambda shown, _: str(shown.row.number), is_right=True)
_NAME = "NAME"
_CURVE = "CURVE"
COLUMNS = (
    Column("JOB", 4, 0, _of_job(lambda shown: str(shown.row.fields["job"])), "job", is_right=True),
    Column("USER", 6, 72, lambda shown, _: shown.row.user, "user", most=8),
    Column(_NAME, 8, 0, lambda shown, _: shown.row.fields["name"] or f"pid {shown.row.key.pid}",
           "name", most=MOST_NAME),
    Column("PID", 7, 150, lambda shown, _: str(shown.row.key.pid), "pid", is_right=True),
    Column("GROUP", 12, 180, _of_job(_field("group")), "group"),
    Column("STATE", 14, 0, _state, "state"),
    Column("PRIORITY", 13, 100, _of_job(_field("priority")), "priority"),
    Column("GOT", 4, 64, _ran(lambda shown: f"{shown.row.fields['share']:.0%}"), "share",
           is_right=True),
    Column("IT/S", 6, 46, _ran(lambda shown: _rate(shown.row.fields["iterations_per_second"])),
           "rate", is_right=True),
    Column("ALONE", 6, 79, _ran(_alone), "rate_alone", is_right=True),
    Column(_CURVE, 12, 116, _curve, most=_MOST_CURVE),
    Column("ITERATIONS", 13, 170, _of_job(_iterations), "iterations", is_right=True),
    Column("RESIDENT", 10, 0, lambda shown, _: format_bytes(shown.row.fields["resident_bytes"]),
           "resident", is_right=True),
    Column("SHARED", 10, 140, _of_job(_bytes("lane_bytes")), "shared", is_right=True),
    Column("SPILLED", 10, 57, _of_job(_bytes("spilled_bytes")), "spilled", is_right=True),
)  # fmt: skip


class Layout(NamedTuple):
    """The columns of one screen, with their widths."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]


def lay_out(width: int, *, has_devices: bool, has_past: bool = True) -> Layout:
    """Returns the columns that fit.

    Args:
        width: Of the terminal, in places.
        has_devices: There are several devices, so that a row has to say which is meant.
        has_past: Something was seen earlier, so that a curve says something.
    """
    all_columns = (*([_DEVICE] if has_devices else []), *COLUMNS)
    columns = [
        column
        for column in all_columns
        if column.from_width <= width and (has_past or column.head != _CURVE)
    ]
    widths = [column.width for column in columns]
    left = max(0, width - sum(widths) - GAP * (len(columns) - 1))
    for place, column in enumerate(columns):  # from the left: user and name, and last the curve
        more = min(left, max(column.most - column.width, 0))
        widths[place] += more
        left -= more
    return Layout(tuple(columns), tuple(widths))


def sorts(width: int) -> list[str]:
    """Returns what the table may be sorted by: the columns that are shown, from the left.

    Args:
        width: Of the terminal, in places.

    Returns:
        Columns of ``gpushare ps``; the first is "", the order of the numbers.
    """
    columns = lay_out(width, has_devices=False).columns
    return ["", *(column.sort for column in columns if column.sort)]


def head_line(layout: Layout, sort: str, *, is_reversed: bool) -> Line:
    """Returns the columns' names; that of the column that is sorted by stands out."""
    spans = []
    for column, width in zip(layout.columns, layout.widths, strict=True):
        is_sorted = bool(sort) and column.sort == sort
        mark = ("-" if is_reversed else "+") if is_sorted else ""
        head = column.head
        if head == _CURVE:
            head = fit(f"IT/S {short_seconds(width * SPAN_SECONDS)}", width)
        text = fit(mark + head, width, is_right=column.is_right)
        spans += [Span(text, "sorted" if is_sorted else "head"), Span(" " * GAP, "head")]
    return tuple(spans[:-1])


def job_line(layout: Layout, shown: Shown, look: str) -> Line:
    """Returns a row of the table.

    Args:
        layout: Which columns.
        shown: The row, and what was seen of it earlier.
        look: Of its state; "selected" for the whole row.
    """
    spans = []
    for column, width in zip(layout.columns, layout.widths, strict=True):
        text = fit(column.text(shown, width), width, is_right=column.is_right)
        of_row = look if look == "selected" else ""
        of_cell = look if column.head == "STATE" else of_row
        spans += [Span(text, of_cell), Span(" " * GAP, of_row)]
    return tuple(spans[:-1])
