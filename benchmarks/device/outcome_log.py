"""A pytest plugin: what came of each test is in a file at once, whatever ends pytest later.

`-p benchmarks.device.outcome_log`, with the file named by DEVICE_SUITE_OUTCOMES. A line each, JSON:
{"test": ..., "state": "begun" | "passed" | "failed" | "skipped", "reason": ..., "text": ...}.
pytest's own files and its texts of failures are written at its end only.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

VARIABLE = "DEVICE_SUITE_OUTCOMES"
MOST_CHARACTERS = 6000
"""Of a failure's text, from its end."""


_is_worker = False
"""Of pytest-xdist's: the process that shares out the tests is told all that its workers find."""


def pytest_configure(config: pytest.Config) -> None:
    """Before any test."""
    global _is_worker
    _is_worker = hasattr(config, "workerinput")


def pytest_runtest_logstart(nodeid: str) -> None:
    """A test begins."""
    _write(test=nodeid, state="begun")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test's setup, call or teardown has ended."""
    if report.failed:
        _write(test=report.nodeid, state="failed", **_failure(report))
    elif report.skipped:
        _write(test=report.nodeid, state="skipped", reason=_skip_reason(report))
    elif report.when == "call":
        _write(test=report.nodeid, state="passed")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file was read: its tests are not known if that failed."""
    if report.failed:
        _write(test=report.nodeid, state="failed", **_failure(report))
    elif report.skipped:
        _write(test=report.nodeid, state="skipped", reason=_skip_reason(report))


def _failure(report: pytest.TestReport | pytest.CollectReport) -> dict[str, str]:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = report.longreprtext
    said = crash.message if crash is not None else (text.strip().splitlines() or ["no text"])[-1]
    captured = "".join(f"\n--- {title} ---\n{content}" for title, content in report.sections)
    reason = said.strip().splitlines()[0] if said.strip() else "no reason given"
    return {"reason": reason, "text": (text + captured)[-MOST_CHARACTERS:]}


def _skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    # (file, line, "Skipped: why") unless it is an expected failure.
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return getattr(report, "wasxfail", "") or "no reason given"


def _write(**what: Any) -> None:
    if _is_worker:
        return
    with Path(os.environ[VARIABLE]).open("a") as file:
        file.write(json.dumps(what) + "\n")
