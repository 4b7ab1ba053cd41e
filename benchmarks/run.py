"""Runs benchmarks: `python -m benchmarks.run [NAME ...] [--json PATH] [--quick]`."""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.report import format_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.report import Report

NAMES = (
    "overhead",
    "handover",
    "allocator",
    "colocation",
    "memory",
    "lanes",
    "decision",
    "guaranteed",
    "fairness",
    "deadline",
    "server",
    "trace_salus",
    "trace_philly",
    "philly_gangs",
    "trace_alibaba",
    "simulator",
    "mix",
    "sweep",
    "thrash",
    "gaps",
    "ranks",
    "gang",
    "hosts",
    "placement",
    "floods",
    "top",
    "dashboard",
)


def main() -> None:
    """Runs the named benchmarks, or all, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all if none"
    )
    parser.add_argument(
        "--json",
        type=Path,
        help="where to write figures and samples: a file, or for several a folder",
    )
    parser.add_argument(
        "--quick", action="store_true", help="few rounds: does it run, not how fast"
    )
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in NAMES:
            parser.error(f"{name!r} is no benchmark: one of {', '.join(NAMES)}")
    names = arguments.names or NAMES
    reports: list[Report] = []
    for name in names:
        module = importlib.import_module(f"benchmarks.bench_{name}")
        report: Report = module.run(quick=arguments.quick)
        print(report.render(), flush=True)
        reports.append(report)
        if arguments.json:
            _write(report, arguments.json if len(names) == 1 else arguments.json / f"{name}.json")
    if len(reports) > 1:
        _print_table(reports)


def _write(report: Report, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report.to_json(), indent=1) + "\n")


def _print_table(reports: Sequence[Report]) -> None:
    """All figures once more, in one place."""
    table = Table("benchmark", "figure")
    table.add_column("value", justify="right")
    for report in reports:
        for number, (figure, value) in enumerate(report.figures.items()):
            table.add_row("" if number else report.name, figure, format_figure(value))
        table.add_section()
    Console().print(table)


if __name__ == "__main__":
    main()
