"""What simulations found, as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpushare.cli._screen.columns import Column, fit
from gpushare.cli._screen.line import Line, line_places, wrap
from gpushare.cli.units import format_bytes
from gpushare.simulate.runs import COMPARED, bound_over, ratios

_NOTHING = "-"


def table_lines(reports: Sequence[dict[str, Any]], width: int | None) -> list[Line]:
    """Lays out a column for each policy; where they do not fit, in several tables.

    Below, a line for each policy under which not all jobs finished: its averages leave those out.
    """
    rows = _rows(reports)
    lines: list[Line] = []
    begin = 0
    while begin < len(reports):
        end = begin + 1
        table = _table(reports, rows, begin, end)
        while end < len(reports):
            wider = _table(reports, rows, begin, end + 1)
            if width is not None and max(map(line_places, wider)) > width:
                break
            table, end = wider, end + 1
        lines += [[], *table] if lines else table
        begin = end
    for text in left_out(reports):
        lines += wrap(text, width)
    return lines


def left_out(reports: Sequence[dict[str, Any]]) -> list[str]:
    """Says of each policy what its averages do not count, if there is anything."""
    texts = []
    for report in reports:
        refused = report["num_denied"]
        running = report["num_jobs"] - report["num_finished"] - refused
        parts = [f"{refused} that no device had memory for"] if refused else []
        parts += [f"{running} that had not ended"] if running else []
        if parts:
            texts.append(f"{report['policy']}: times leave out {' and '.join(parts)}")
    return texts


def _table(
    reports: Sequence[dict[str, Any]], rows: Sequence[Sequence[str]], begin: int, end: int
) -> list[Line]:
    heads = [Column(report["policy"], is_number=True) for report in reports[begin:end]]
    cells = [[row[0], *row[begin + 1 : end + 1]] for row in rows]
    return fit([Column(""), *heads], cells, None).lines


def _rows(reports: Sequence[dict[str, Any]]) -> list[list[str]]:
    """What is compared, and its value for each policy."""
    compared = ratios(reports)
    rows = [
        [f"{what}, {name}", *(_spread(report[key], name) for report in reports)]
        for what, key in (("completion", "completion_seconds"), ("wait", "wait_seconds"))
        for name in COMPARED
    ]
    first = reports[0]["policy"]
    rows += [
        [
            f"{first} over this, {name}",
            *(_ratio(compared[each["policy"]][name]) for each in reports),
        ]
        for name in ("average", "p95")
    ]
    rows.append(["least possible over this, average", *(_ratio(bound_over(e)) for e in reports)])
    rows += [
        [f"slow-down, {name}", *(_factor(report["slowdown"], name) for report in reports)]
        for name in ("median", "p99", "worst")
    ]
    rows += [
        ["makespan", *(format_time(each["makespan_seconds"]) for each in reports)],
        ["utilisation", *(f"{each['utilisation']:.1%}" for each in reports)],
        ["switches", *(str(each["switches"]) for each in reports)],
        ["moved", *(format_bytes(each["moved_bytes"]) for each in reports)],
        ["jobs that finished", *(f"{e['num_finished']} of {e['num_jobs']}" for e in reports)],
    ]
    if any(each["num_failures"] for each in reports):
        rows.append(["failures", *(str(each["num_failures"]) for each in reports)])
        rows.append(["lost by them", *(format_time(each["lost_seconds"]) for each in reports)])
    if any(each["num_moves"] for each in reports):
        rows.append(["moved or sent away", *(str(each["num_moves"]) for each in reports)])
    if any(each["num_late"] for each in reports):
        rows.append(["late", *(str(each["num_late"]) for each in reports)])
    return rows


def format_time(seconds: float) -> str:
    """Returns, for example, "1.25 s", "3.5 min" or "2.1 h"."""
    for unit, factor in (("h", 3600.0), ("min", 60.0)):
        if seconds >= factor:
            return f"{seconds / factor:.1f} {unit}"
    return f"{seconds:.2f} s"


def _spread(spread: dict[str, float] | None, name: str) -> str:
    return _NOTHING if spread is None else format_time(spread[name])


def _factor(spread: dict[str, float] | None, name: str) -> str:
    if spread is None:
        return _NOTHING
    return f"{spread[name]:.2f}x" if spread[name] < 100 else f"{spread[name]:,.0f}x"


def _ratio(ratio: float | None) -> str:
    return _NOTHING if ratio is None else f"{ratio:.2f}x"
