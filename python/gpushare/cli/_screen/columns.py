"""Tables that fit a width: which columns stay, and how wide each is.

Where a table is too wide, the columns that the reader misses least go first: those that say the
same of each row, then by their rank. Names are shortened before that, down to a length at which
they still tell rows apart. Figures are never cut. Where there is room left, more columns come in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gpushare.cli._screen.colours import NOTE
from gpushare.cli._screen.line import Line, Span, wrap
from gpushare.cli._status.table import GAP, places, shorten

NOTHING = "-"
"""In a cell that has nothing to say."""


def no_style(_text: str) -> str:
    """The style of cells that are like any text."""
    return ""


class Column(NamedTuple):
    """One column."""

    head: str
    drop: int = 0
    """The largest goes first where the table is too wide; 0 never does."""
    is_number: bool = False
    """Whether it is aligned to the right."""
    least: int = 0
    """How many places are left of a name at least; 0: it is never cut."""
    most: int = 24
    """How many places a name has at most before other columns have theirs."""
    is_extra: bool = False
    """Whether it stands only in a terminal with room for it."""
    style: Callable[[str], str] = no_style
    """The style of a cell, by its text."""


class Table(NamedTuple):
    """A table as it is shown."""

    lines: list[Line]
    left_out: list[str]
    """Heads of columns for which there was no room, though they say something."""


def fit(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> Table:
    """Lays out a table.

    Args:
        columns: All there may be.
        rows: Printable cells, one of each column.
        width: Places of a line; None for no bound.
    """
    cells = [[row[i] for row in rows] for i in range(len(columns))]
    natural = [
        max(places(text) for text in (column.head, *cells[i])) for i, column in enumerate(columns)
    ]
    layout = _Layout(columns, cells, natural)
    widths = layout.choose(width)
    shown = sorted(widths)
    heads = [Span(columns[i].head, "bold") for i in shown]
    body = [[Span(row[i], columns[i].style(row[i])) for i in shown] for row in rows]
    left_out = [columns[i].head for i in layout.dropped if len(set(cells[i])) > 1]
    sizes = [widths[i] for i in shown]
    lines = [_joined(line, [columns[i] for i in shown], sizes) for line in (heads, *body)]
    return Table(lines, left_out)


def fit_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None
) -> list[Line]:
    """Returns the lines of ``fit``, and a line with what a wider terminal would show."""
    table = fit(columns, rows, width)
    if not table.left_out:
        return table.lines
    note = wrap(f"in a wider window also: {', '.join(table.left_out)}", width, NOTE)
    return [*table.lines, *note]


def _joined(cells: Sequence[Span], columns: Sequence[Column], widths: Sequence[int]) -> Line:
    """A line, without spaces at its end."""
    line = []
    space = ""
    for cell, column, width in zip(cells, columns, widths, strict=True):
        text = shorten(cell.text, width)
        padding = " " * (width - places(text))
        line += [Span(space + padding if column.is_number else space), Span(text, cell.style)]
        space = GAP if column.is_number else padding + GAP
    while line and not line[-1].text.strip():
        line.pop()
    return [span for span in line if span.text]


class _Layout:
    """The choice of columns and widths."""

    def __init__(
        self, columns: Sequence[Column], cells: list[list[str]], natural: list[int]
    ) -> None:
        self._columns = columns
        self._cells = cells
        self._natural = natural
        self.dropped: list[int] = []
        """Columns that went, in the order in which they did."""

    def choose(self, width: int | None) -> dict[int, int]:
        """Returns the width of each column that stays, by its place."""
        whole = {i: self._natural[i] for i, each in enumerate(self._columns) if not each.is_extra}
        if width is None:
            return whole
        widths = {
            i: min(size, self._columns[i].most) if self._columns[i].least else size
            for i, size in whole.items()
        }
        self._drop(widths, width)
        if not self.dropped:
            self._add_extras(widths, width)
        self._shrink(widths, width)
        self._grow(widths, width)
        return widths

    def _drop(self, widths: dict[int, int], width: int) -> None:
        def least() -> dict[int, int]:
            return {i: min(size, self._columns[i].least or size) for i, size in widths.items()}

        def may_go() -> list[int]:
            return [i for i in widths if self._columns[i].drop]

        while _total(widths) > width and (same := [i for i in may_go() if self._is_same(i)]):
            self._remove(widths, same)
        while _total(least()) > width and may_go():
            self._remove(widths, may_go())

    def _remove(self, widths: dict[int, int], candidates: list[int]) -> None:
        worst = max(candidates, key=lambda i: self._columns[i].drop)
        del widths[worst]
        self.dropped.append(worst)

    def _is_same(self, i: int) -> bool:
        """Whether a column says nothing that tells one row from another."""
        return len(self._cells[i]) > 1 and len(set(self._cells[i])) == 1

    def _add_extras(self, widths: dict[int, int], width: int) -> None:
        for i, each in enumerate(self._columns):
            size = max(each.least, places(each.head)) if each.least else self._natural[i]
            says_something = bool(set(self._cells[i]) - {NOTHING})
            if each.is_extra and says_something and _total({**widths, i: size}) <= width:
                widths[i] = size

    def _shrink(self, widths: dict[int, int], width: int) -> None:
        """Takes from the widest name, place by place; from a name's last places only in need."""
        while _total(widths) > width:
            longer = [i for i in widths if widths[i] > self._columns[i].least > 0]
            longer = longer or [i for i in widths if self._columns[i].least and widths[i] > 1]
            if not longer:
                return
            widths[max(longer, key=lambda i: widths[i])] -= 1

    def _grow(self, widths: dict[int, int], width: int) -> None:
        for i in sorted(widths):
            more = min(self._natural[i] - widths[i], width - _total(widths))
            widths[i] += max(more, 0)


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)
