"""The forms in which ``gpushare ps`` prints: a table, CSV with nvidia-smi's words, or JSON.

All three have the same values. In the table and in CSV a name's characters that are not printable
are "?", so that no name of another user can steer a terminal or add a row; JSON escapes them.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from gpushare.cli._ps.columns import Column, Value, value_of
from gpushare.cli._screen.csv_text import csv_text
from gpushare.cli._status.table import align
from gpushare.errors import ConfigError
from gpushare.printable import printable

NOT_KNOWN = "[N/A]"
"""nvidia-smi's word. In JSON it is null."""


class Form(NamedTuple):
    """How to print."""

    name: str = "table"
    """"table", "csv" or "json"."""
    has_header: bool = True
    """Whether the first line has the columns' names."""
    has_units: bool = True
    """Whether each value in CSV is followed by its unit."""


def parse_form(text: str) -> Form:
    """Returns the form that ``--format`` asks for.

    Args:
        text: "table", "csv" or "json", then a comma and "noheader" or "nounits" for CSV.

    Raises:
        ConfigError: It is none of these.
    """
    name, *words = text.split(",")
    allowed = {"csv": {"noheader", "nounits"}}.get(name, set())
    if name not in {"table", "csv", "json"} or not allowed.issuperset(words):
        raise ConfigError(
            f"ps: --format {text}: use table, json or csv; csv may be followed by "
            "noheader and nounits, as csv,noheader,nounits"
        )
    return Form(name, "noheader" not in words, "nounits" not in words)


def render(rows: list[dict[str, Any]], columns: list[Column], form: Form) -> str:
    """Returns the text to print, without a newline at its end.

    Args:
        rows: Of jobs, as in the status report.
        columns: What to say of each, in this order.
        form: How.
    """
    if form.name == "json":
        jobs = [{column.name: value_of(column, row) for column in columns} for row in rows]
        return json.dumps({"schema_version": 1, "jobs": jobs})
    head = [f"{each.name} [{each.unit}]" if each.unit else each.name for each in columns]
    if form.name == "table":
        cells = [tuple(_text(value_of(each, row)) for each in columns) for row in rows]
        return "\n".join(align([tuple(head), *cells]))
    lines = [head] if form.has_header else []
    for row in rows:
        lines.append(
            [_text(value_of(each, row), each.unit if form.has_units else "") for each in columns]
        )
    return csv_text(lines).removesuffix("\n")


def _text(value: Value, unit: str = "") -> str:
    if value is None:
        return NOT_KNOWN
    return printable(str(value)) + (f" {unit}" if unit else "")
