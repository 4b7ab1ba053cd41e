"""Takes what a part of the device suite found from its files, into the part.

Nothing here raises because of what a file holds: what cannot be read is a failure of the part.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.device.part import Part


def read_outcomes(path: Path, part: Part) -> None:
    """Counts the tests of a file of outcome_log's; that there are none is a failure."""
    last: dict[str, dict[str, Any]] = {}
    try:
        for line in path.read_text(errors="replace").splitlines():
            found = json.loads(line)
            before = last.get(found["test"])
            # A test that passed may fail while its fixtures end, and has failed then.
            if before is None or before["state"] != "failed":
                last[found["test"]] = {"state": found["state"], **found}
    except (OSError, ValueError, KeyError, TypeError) as error:
        part.failed.append(f"not all results can be read: {type(error).__name__}: {error}")
    for name, found in last.items():
        reason = str(found.get("reason") or "no reason given")
        match found["state"]:
            case "passed":
                part.passed += 1
            case "skipped":
                part.skipped.append(f"{name}: {_last_line(reason)}")
            case "failed":
                part.failed.append(f"{name}: {reason}")
                part.texts[name] = str(found.get("text", ""))
            case _:
                part.failed.append(f"{name}: it had begun, and has not ended")
    _expect_tests(part)


def read_junit(path: Path, part: Part) -> None:
    """The same for a JUnit file."""
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
            reason = skipped.get("message") or skipped.text or "no reason given"
            part.skipped.append(f"{name}: {_last_line(reason)}")
        else:
            part.passed += 1
    if not part.passed and not part.failed:
        part.failed.append("no test ran")


def read_reports(path: Path, part: Part) -> None:
    """Takes a benchmark's figures into the part; that there are none is a failure."""
    try:
        found = json.loads(path.read_text())
        reports, failures = found["reports"], found["failures"]
        traces = [failure["traceback"] for failure in failures]
        for report in reports:  # what results.py shows
            _ = report["name"], report["figures"].items(), report["goals"], report["notes"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        part.failed.append(f"no report was written: {type(error).__name__}: {error}")
        return
    part.reports = reports
    part.failed += [_last_line(trace) for trace in traces]
    if not part.reports and not part.failed:
        part.failed.append("nothing was measured")


def read_facts(path: Path, part: Part) -> dict[str, Any]:
    """A JSON object that a part wrote; that there is none is a failure."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        part.failed.append(f"nothing was found out: {type(error).__name__}: {error}")
        return {}
    if not isinstance(found, dict):
        part.failed.append(f"nothing was found out: {found!r}")
        return {}
    return found


def _expect_tests(part: Part) -> None:
    if part.passed or part.failed:
        return
    # Where each test says that it does not apply, that is no failure.
    if not part.skipped:
        part.failed.append("no test ran")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]
