"""Measures the device: `python -m benchmarks.device.run [NAME ...] [--json FILE] [--quick]`.

The device is the machine's own GPU. With DEVICE_SUITE_FAKE=1 it is the fake one, whose figures mean
nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import traceback
from pathlib import Path
from typing import Any

from benchmarks.device import goals, machine
from benchmarks.report import Report, format_figure

NAMES = (
    "alone",
    "two_jobs",
    "bandwidth",
    "reachable",
    "vmm",
    "inference",
    "handover",
    "mixed",
    "pairs",
)
"""The benchmarks in the device suite's order. The most important is first, as time may run out."""


def main() -> None:
    """Runs the named benchmarks, or all; the exit status is 1 if one could not be run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all if none"
    )
    parser.add_argument("--json", type=Path, help="where to write figures and samples")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in NAMES:
            parser.error(f"{name!r} is no benchmark: one of {', '.join(NAMES)}")
    if missing := machine.missing():
        raise SystemExit(f"no device to measure: {missing}")
    found: dict[str, list[dict[str, Any]]] = {"reports": [], "failures": []}
    for name in arguments.names or NAMES:
        measure(name, found, quick=arguments.quick)
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    if found["failures"]:
        raise SystemExit(1)


def measure(name: str, found: dict[str, list[dict[str, Any]]], *, quick: bool) -> None:
    """Adds a benchmark's report, or its failure; prints either."""
    try:
        report = importlib.import_module(f"benchmarks.device.bench_{name}").run(quick=quick)
    except Exception:
        text = traceback.format_exc()
        print(f"{name} failed: {text}", file=sys.stderr, flush=True)
        found["failures"].append({"name": name, "traceback": text})
        return
    print(_render(report), flush=True)
    found["reports"].append(_to_json(report))


def _render(report: Report) -> str:
    """Returns a report as other benchmarks print it, followed by the goals."""
    lines = [report.render()]
    for figure, value in report.figures.items():
        if goal := goals.of(report.name, figure):
            lines.append(f"  goal: {figure} {goal.text}: {goal.verdict(value)}")
    return "\n".join(lines)


def _to_json(report: Report) -> dict[str, Any]:
    described = report.to_json()
    described["command"] = f"python -m benchmarks.device.run {' '.join(sys.argv[1:])}".rstrip()
    described["notes"] = report.notes
    described["goals"] = {
        figure: {"goal": goal.text, "verdict": goal.verdict(value), "value": format_figure(value)}
        for figure, value in report.figures.items()
        if (goal := goals.of(report.name, figure))
    }
    return described


if __name__ == "__main__":
    main()
