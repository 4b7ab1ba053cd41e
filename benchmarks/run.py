"""Runs benchmarks: `python -m benchmarks.run NAME [NAME ...] [--json FILE] [--quick]`."""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.report import Report

NAMES = ("overhead", "handover", "allocator", "colocation")


def main() -> None:
    """Runs the named benchmarks, or all, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all if none"
    )
    parser.add_argument("--json", type=Path, help="where to write the figures and samples")
    parser.add_argument(
        "--quick", action="store_true", help="few rounds: does it run, not how fast"
    )
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in NAMES:
            parser.error(f"{name!r} is no benchmark: one of {', '.join(NAMES)}")
    results: list[dict[str, Any]] = []
    for name in arguments.names or NAMES:
        module = importlib.import_module(f"benchmarks.bench_{name}")
        report: Report = module.run(quick=arguments.quick)
        print(report.render(), flush=True)
        results.append(report.to_json())
    if arguments.json:
        whole = results[0] if len(results) == 1 else results
        arguments.json.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
