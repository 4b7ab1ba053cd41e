"""What the device suite found, as results.json and results.md."""

from __future__ import annotations

import functools
import json
import platform
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.device import machine
from benchmarks.processes import ROOT
from benchmarks.report import format_figure

if TYPE_CHECKING:
    from benchmarks.device.suite import Part

_ASK_TORCH = """
import json, torch
from benchmarks.device import machine
machine.start()
found = torch.cuda.get_device_properties(0)
print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "device": found.name,
    "device_bytes": found.total_memory, "capability": f"{found.major}.{found.minor}"}))
"""


def read_junit(path: Path, part: Part) -> None:
    """Counts the tests of a JUnit file into the part; that there are none is a failure."""
    try:
        cases = list(ET.parse(path).getroot().iter("testcase"))
    except (OSError, ET.ParseError) as error:
        part.failed.append(f"no results were written: {error}")
        return
    for case in cases:
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            part.failed.append(name)
        elif skipped is not None:
            part.skipped.append(f"{name}: {_reason(skipped)}")
        else:
            part.passed += 1
    if not part.passed and not part.failed:
        part.failed.append("no test ran")


def _reason(skipped: ET.Element) -> str:
    return _last_line(skipped.get("message") or skipped.text or "no reason given")


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def read_reports(path: Path, part: Part) -> None:
    """Takes the benchmark's figures into the part; that there are none is a failure."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        part.failed.append(f"no report was written: {error}")
        return
    part.reports = found["reports"]
    part.failed += [_last_line(failure["traceback"]) for failure in found["failures"]]
    if not part.reports and not part.failed:
        part.failed.append("nothing was measured")


def write(out: Path, parts: Sequence[Part]) -> None:
    """Both files."""
    found = {
        "schema_version": 1,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": f"scripts/device_suite run {' '.join(sys.argv[1:])}",
        "machine": _machine(),
        "is_good": all(part.is_good for part in parts),
        "parts": [asdict(part) for part in parts],
    }
    (out / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    (out / "results.md").write_text(_markdown(found, parts))


@functools.cache
def _machine() -> dict[str, Any]:
    with machine.device() as env:
        said = _output([sys.executable, "-c", _ASK_TORCH], env)
    found: dict[str, Any] = json.loads(said) if said.startswith("{") else {"device": said}
    found["is_fake"] = machine.is_fake()
    found["driver"] = _output(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], {}
    )
    found["python"] = platform.python_version()
    found["kernel"] = platform.release()
    found["compiler"] = _output(["c++", "--version"], {}).partition("\n")[0]
    found["commit"] = _output(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], {})
    return found


def _output(command: list[str], env: dict[str, str]) -> str:
    """What a command says; if it cannot, that."""
    from benchmarks.processes import job_environment

    try:
        done = subprocess.run(
            command, env=job_environment(env), capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"unknown ({error.strerror}: {command[0]})"
    if done.returncode != 0:
        return f"unknown ({(done.stderr.strip() or 'no reason given').splitlines()[-1]})"
    return done.stdout.strip()


def _markdown(found: dict[str, Any], parts: Sequence[Part]) -> str:
    lines = [f"# Device suite, {found['date']}", ""]
    lines.append("All good." if found["is_good"] else "**Not all good.**")
    lines += ["", f"`{found['command']}`", ""]
    lines += [f"- {key}: {value}" for key, value in found["machine"].items()]
    lines += ["", "| part | outcome | passed | failed | skipped | seconds |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for part in parts:
        lines.append(
            f"| {part.name} | {_outcome(part)} | {part.passed} | {len(part.failed)} "
            f"| {len(part.skipped)} | {part.seconds:.0f} |"
        )
    for title, kept in (("Failed", "failed"), ("Skipped", "skipped")):
        entries = [f"- {part.name}: {one}" for part in parts for one in getattr(part, kept)]
        if entries:
            lines += ["", f"## {title}", "", *entries]
    for part in parts:
        if part.last_lines:
            lines += ["", f"## The end of {part.name}", "", "```", *part.last_lines, "```"]
    for part in parts:
        for report in part.reports:
            lines += ["", *_figures(report)]
    return "\n".join(lines) + "\n"


def _outcome(part: Part) -> str:
    if part.exit_status is None:
        return f"NOT RUN: {part.reason}"
    if part.is_good:
        return part.reason or "good"
    return f"FAILED ({part.exit_status}) {part.reason}".rstrip()


def _figures(report: dict[str, Any]) -> list[str]:
    lines = [f"## {report['name']}", "", "| figure | value | goal | |", "| --- | --- | --- | --- |"]
    for figure, value in report["figures"].items():
        goal = report["goals"].get(figure, {"goal": "", "verdict": ""})
        text = f"| {figure} | {format_figure(value)} | {goal['goal']} | {goal['verdict']} |"
        lines.append(text)
    if report["notes"]:
        lines += ["", *(f"- {note}" for note in report["notes"])]
    return lines
