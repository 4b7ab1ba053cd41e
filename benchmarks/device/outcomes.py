"""A part of the device suite: one command, its limits, and what came of it.

The functions below take what a part found from its files into the part. None of them raises because
of what a file holds: a file that cannot be read is a failure of the part.
"""

from __future__ import annotations

import json
import signal
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(kw_only=True)
class Part:
    """One command of the suite, and what came of it."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    """Variables that the command sees besides the suite's own environment."""
    seconds: float = 0.0
    has_begun: bool = False
    exit_status: int | None = None
    """None: it was not run, or the suite ended while it ran. Negative: the signal that ended it."""
    reason: str = ""
    """Why it was not run, or what ended it."""
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """The skipped tests, with their reasons."""
    texts: dict[str, str] = field(default_factory=dict)
    """The text of each failed test, by the test's name."""
    left_behind: list[str] = field(default_factory=list)
    """Processes that were still alive when the command had ended, and were ended then."""
    last_lines: list[str] = field(default_factory=list)
    """The end of the command's output, if it ended badly."""
    reports: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether it ran, and nothing of it failed."""
        return self.exit_status == 0 and not self.failed

    @property
    def outcome(self) -> str:
        """The outcome in words, for a table."""
        if not self.has_begun and self.exit_status is None:
            return f"NOT RUN: {self.reason}"
        if self.exit_status is None:
            return f"LOST: {self.reason or 'the suite ended while it ran'}"
        if self.is_good:
            return self.reason or "good"
        return f"FAILED ({_status_text(self.exit_status)}) {self.reason}".rstrip()


def read_outcomes(path: Path, part: Part, *, may_all_skip: bool = False) -> None:
    """Counts the tests of a file that the pytest plugin wrote (pytest_parts.py).

    A part in which no test ran has failed.

    Args:
        path: The file.
        part: Takes the counts, the failures and the reasons of skipped tests.
        may_all_skip: A part has not failed for the reason that all of its tests were skipped.
    """
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
    if not part.passed and not part.failed and not (may_all_skip and part.skipped):
        part.failed.append("no test ran")


def read_junit(path: Path, part: Part) -> None:
    """Counts the tests of a JUnit file. A part in which no test ran has failed."""
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
    """Takes a benchmark's figures into the part. A benchmark without figures has failed."""
    try:
        found = json.loads(path.read_text())
        reports, failures = found["reports"], found["failures"]
        traces = [failure["traceback"] for failure in failures]
        for report in reports:  # results.py shows these entries
            _ = report["name"], report["figures"].items(), report["goals"], report["notes"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        part.failed.append(f"no report was written: {type(error).__name__}: {error}")
        return
    part.reports = reports
    part.failed += [_last_line(trace) for trace in traces]
    if not part.reports and not part.failed:
        part.failed.append("nothing was measured")


def read_facts(path: Path, part: Part) -> dict[str, Any]:
    """Returns the JSON object that a part wrote. A part that wrote none has failed."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        part.failed.append(f"nothing was found out: {type(error).__name__}: {error}")
        return {}
    if not isinstance(found, dict):
        part.failed.append(f"nothing was found out: {found!r}")
        return {}
    return found


def _status_text(exit_status: int) -> str:
    """Returns an exit status as a number, or as the name of the signal that ended the process."""
    if exit_status >= 0:
        return str(exit_status)
    try:
        return signal.Signals(-exit_status).name
    except ValueError:
        return str(exit_status)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]
