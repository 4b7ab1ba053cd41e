"""What simulations found, as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from gpushare.cli.units import format_bytes
from gpushare.simulate.runs import COMPARED, ratios

_NOTHING = "-"


def make_table(reports: Sequence[dict[str, Any]]) -> Table:
    """Returns a column for each policy."""
    table = Table("")
    for report in reports:
        table.add_column(report["policy"], justify="right")
    compared = ratios(reports)
    for what, key in (("completion", "completion_seconds"), ("wait", "wait_seconds")):
        for name in COMPARED:
            table.add_row(f"{what}, {name}", *(_spread(report[key], name) for report in reports))
    first = reports[0]["policy"]
    for name in ("average", "p95"):
        table.add_row(
            f"{first} over this, {name}",
            *(_ratio(compared[report["policy"]][name]) for report in reports),
        )
    table.add_section()
    table.add_row("makespan", *(format_time(report["makespan_seconds"]) for report in reports))
    table.add_row("utilisation", *(f"{report['utilisation']:.1%}" for report in reports))
    table.add_row("switches", *(str(report["switches"]) for report in reports))
    table.add_row("moved", *(format_bytes(report["moved_bytes"]) for report in reports))
    table.add_row(
        "jobs that finished", *(f"{row['num_finished']} of {row['num_jobs']}" for row in reports)
    )
    if any(report["num_late"] for report in reports):
        table.add_row("late", *(str(report["num_late"]) for report in reports))
    return table


def format_time(seconds: float) -> str:
    """Returns, for example, "1.25 s", "3.5 min" or "2.1 h"."""
    for unit, factor in (("h", 3600.0), ("min", 60.0)):
        if seconds >= factor:
            return f"{seconds / factor:.1f} {unit}"
    return f"{seconds:.2f} s"


def _spread(spread: dict[str, float] | None, name: str) -> str:
    return _NOTHING if spread is None else format_time(spread[name])


def _ratio(ratio: float | None) -> str:
    return _NOTHING if ratio is None else f"{ratio:.2f}x"
