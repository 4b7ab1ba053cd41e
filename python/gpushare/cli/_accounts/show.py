"""Rows of accounts as a table for people, as csv, or as json."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpushare._accounts.accounts import Row
from gpushare.cli._accounts.options import Format
from gpushare.cli._status.table import align, shorten
from gpushare.cli.units import format_bytes
from gpushare.printable import printable

Cell = tuple[str, Callable[[Row], str]]
"""The head of a table's column, and what stands below it for a row."""


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
        writer = csv.writer(sys.stdout, lineterminator="\n")
        names = list(columns)
        writer.writerow(names)
        writer.writerows(
            [["" if row[name] is None else row[name] for name in names] for row in rows]
        )
    else:
        heads = tuple(head for head, _ in table)
        print("\n".join(align([heads, *(tuple(cell(row) for _, cell in table) for row in rows)])))


def text_of(name: str) -> Callable[[Row], str]:
    """Returns a cell that shows a column of text, cut where it is long."""
    return lambda row: shorten(str(row[name]))


def count_of(name: str) -> Callable[[Row], str]:
    """Returns a cell that shows a number."""
    return lambda row: str(row[name])


def time_of(name: str) -> Callable[[Row], str]:
    """Returns a cell that shows seconds."""
    return lambda row: format_span(row[name])


def size_of(name: str) -> Callable[[Row], str]:
    """Returns a cell that shows bytes."""
    return lambda row: format_bytes(row[name])


def format_span(seconds: float) -> str:
    """Returns, for example, "0.25 s", "41.0 s", "12 min 5 s", "7 h 4 min" or "3 d 2 h"."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, small, small_unit in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // small} {small_unit}"
    return f"{whole} s"


def ending(row: Row) -> str:
    """Returns how a job ended, with its exit code or signal where they are known."""
    if row["signal"]:
        return f"killed by {row['signal']}"
    code = "" if row["exit_code"] is None else f", exit code {row['exit_code']}"
    return printable(f"{row['how']}{code}")


def print_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Prints a name and a value a line."""
    print("\n".join(align([(name, printable(str(value))) for name, value in fields])))
