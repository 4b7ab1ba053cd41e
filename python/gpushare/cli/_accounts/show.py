"""Rows of accounts as a table for people, as csv, or as json."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence

from gpushare._accounts.accounts import Row
from gpushare.cli._accounts.options import Format
from gpushare.cli._screen.columns import NOTHING, Column, fit_lines
from gpushare.cli._screen.csv_text import csv_text
from gpushare.cli._screen.terminal import screen_width
from gpushare.cli._screen.terminal import show as show_lines
from gpushare.cli.units import format_bytes, format_span
from gpushare.printable import printable

Cell = tuple[Column, Callable[[Row], str]]
"""A table's column, and what stands in it for a row."""


def show(rows: Sequence[Row], columns: Iterable[str], table: Sequence[Cell], form: Format) -> None:
    """Prints rows.

    Args:
        rows: Each with all columns.
        columns: For csv, in this order.
        table: For the table.
        form: Which of the three.
    """
    if form is Format.JSON:
        print(json.dumps(rows, indent=1))
    elif form is Format.CSV:
        names = list(columns)
        print(csv_text([names, *([row[name] for name in names] for row in rows)]), end="")
    else:
        if not rows:  # a sentence says so
            return
        cells = [[cell(row) for _, cell in table] for row in rows]
        show_lines(fit_lines([column for column, _ in table], cells, screen_width()))


def text_of(name: str) -> Callable[[Row], str]:
    """Returns a cell that shows a column of text."""
    return lambda row: printable(str(row[name])) or NOTHING


def count_of(name: str) -> Callable[[Row], str]:
    """Returns a cell that shows a number."""
    return lambda row: str(row[name])


def time_of(name: str) -> Callable[[Row], str]:
    """Returns a cell that shows seconds."""
    return lambda row: format_span(row[name])


def size_of(name: str) -> Callable[[Row], str]:
    """Returns a cell that shows bytes."""
    return lambda row: format_bytes(row[name])


def peak_of(row: Row, unknown: str) -> str:
    """Returns the most memory that a job had; it is 0 where nobody knows."""
    return format_bytes(row["peak_bytes"]) if row["peak_bytes"] else unknown


def say_if_none(rows: Sequence[Row], since: str, folders: Iterable[object]) -> None:
    """Says on stderr that no job was found, and where it was looked for."""
    if rows:
        return
    wider = "" if since == "all" else "; for earlier ones: --since all"
    where = ", ".join(map(str, folders))
    print(
        f"gpushare: no such job has ended (--since {since}), by the accounts in {where}{wider}",
        file=sys.stderr,
    )


def ending(row: Row) -> str:
    """Returns how a job ended, with its exit code or signal where they are known."""
    if row["signal"]:
        return f"killed by {row['signal']}"
    code = "" if row["exit_code"] is None else f", exit code {row['exit_code']}"
    return printable(f"{row['how']}{code}")
