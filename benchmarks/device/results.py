"""Writes what the device suite found to results.json and results.md.

Both are replaced in one step, so that a reader finds a whole file whenever the suite was ended.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.report import format_figure

if TYPE_CHECKING:
    from benchmarks.device.outcomes import Part

MOST_TEXT_LINES = 60
"""The last lines of a failed test's text that results.md shows; results.json has more."""


def write(
    out: Path, command: str, machine: dict[str, Any], parts: Sequence[Part], notes: Sequence[str]
) -> None:
    """Writes both files into the folder `out`."""
    found = {
        "schema_version": 2,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": command,
        "machine": machine,
        "is_good": all(part.is_good for part in parts),
        "notes": list(notes),
        "parts": [asdict(part) | {"outcome": part.outcome} for part in parts],
    }
    _replace(out / "results.json", json.dumps(found, indent=1) + "\n")
    _replace(out / "results.md", _markdown(found, parts))


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.write_text(text)
    unfinished.replace(path)


def _markdown(found: dict[str, Any], parts: Sequence[Part]) -> str:
    lines = [f"# Device suite, {found['date']}", ""]
    lines.append("All good." if found["is_good"] else "**Not all good.**")
    lines += ["", f"`{found['command']}`", ""]
    lines += [f"- {key}: {value}" for key, value in found["machine"].items()]
    if found["notes"]:
        lines += ["", *(f"**Note:** {note}" for note in found["notes"])]
    lines += ["", "| part | outcome | passed | failed | skipped | seconds |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for part in parts:
        lines.append(
            f"| {part.name} | {part.outcome} | {part.passed} | {len(part.failed)} "
            f"| {len(part.skipped)} | {part.seconds:.0f} |"
        )
    kinds = (
        ("Failed", "failed"),
        ("Skipped", "skipped"),
        ("Ended after their part", "left_behind"),
    )
    for title, kept in kinds:
        entries = [f"- {part.name}: {one}" for part in parts for one in getattr(part, kept)]
        if entries:
            lines += ["", f"## {title}", "", *entries]
    for part in parts:
        for report in part.reports:
            lines += ["", *_figures(report)]
    for part in parts:
        for name, text in part.texts.items():
            lines += ["", *_fenced(f"{part.name}: {name}", text.splitlines()[-MOST_TEXT_LINES:])]
        if part.last_lines:
            lines += ["", *_fenced(f"The end of {part.name}", part.last_lines)]
    return "\n".join(lines) + "\n"


def _fenced(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "", "```", *lines, "```"]


def _figures(report: dict[str, Any]) -> list[str]:
    lines = [f"## {report['name']}", "", "| figure | value | goal | |", "| --- | --- | --- | --- |"]
    for figure, value in report["figures"].items():
        goal = report["goals"].get(figure, {"goal": "", "verdict": ""})
        text = f"| {figure} | {format_figure(value)} | {goal['goal']} | {goal['verdict']} |"
        lines.append(text)
    if report["notes"]:
        lines += ["", *(f"- {note}" for note in report["notes"])]
    return lines
