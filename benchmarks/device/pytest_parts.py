"""pytest in the device suite: its command line, and a plugin that keeps what came of each test.

A part is a file of tests/gpu. pytest-timeout and pytest-xdist are used where the machine has them:
the one ends a test that hangs and goes on with the next, the other runs four at a time, each in a
network of its own (own_network.py). Each test has a coordinator, and little memory. Where networks
cannot be made, one test runs at a time, since a device has one coordinator. Without pytest-timeout
a test that hangs ends its part.

pytest writes its own files and its texts of failures only at its end. The plugin therefore writes a
line to a file as soon as a test begins or ends, and no later end of pytest loses that line. The
file is named by DEVICE_SUITE_OUTCOMES. Each line is a JSON object:
{"test": ..., "state": "begun" | "passed" | "failed" | "skipped", "reason": ..., "text": ...}.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.device import build, machine, own_network

if TYPE_CHECKING:
    import pytest

FILES = {
    "moving": 90,
    "two_jobs": 120,
    "other_processes": 70,
    "mixed_precision": 90,
    "graphs": 120,
    "devices": 70,
    "distributed": 120,
    "mps": 90,
}
"""The most seconds of each file. The file that matters most is first. MPS is last, since remains of
its server would slow down or break the parts after it."""
ALSO_REACHABLE = ("moving", "two_jobs")
"""Files that run with GPUSHARE_REACHABLE=on as well, where the device can do that."""
MAY_ALL_SKIP = ("devices", "mps")
"""Files all of whose tests may be skipped: a machine may have one whole GPU, and be without MPS."""
TEST_SECONDS = 60
AT_ONCE = 4
OUTCOMES_VARIABLE = "DEVICE_SUITE_OUTCOMES"
MOST_CHARACTERS = 6000
"""The length of a failure's text, of which the end is kept."""

_is_worker = False
"""True in a worker of pytest-xdist, which writes nothing: the process that shares out the tests is
told all that its workers find."""


def path_of(name: str) -> str:
    """Returns the path of a file of tests."""
    return f"tests/gpu/test_{name}.py"


def command(*arguments: str) -> list[str]:
    """Returns pytest's command line with these arguments, which are files and options."""
    words = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    # Untested versions of a library may warn of anything. A warning must not cost the results.
    words += ["-W", "default", "-p", "benchmarks.device.pytest_parts"]
    if build.has_module("pytest_timeout"):
        seconds = TEST_SECONDS * (5 if machine.is_fake() else 1)
        words += ["-p", "timeout", f"--timeout={seconds}", "--timeout-method=signal"]
    if build.has_module("xdist") and (machine.is_fake() or own_network.is_allowed()):
        words += ["-p", "xdist", "-n", str(min(AT_ONCE, build.cores()))]
    return [*words, *arguments]


def cpp_arguments() -> list[str]:
    """Returns the arguments for the C++ tests, which do without the other files' fixtures."""
    return ["--noconftest", path_of("cpp")]


def outcomes_file(folder: Path, name: str) -> Path:
    """Returns the file of a part's outcomes. The part's name may have any characters."""
    return folder / ("".join(c if c.isalnum() else "-" for c in name) + ".jsonl")


def pytest_configure(config: pytest.Config) -> None:
    """Notes whether this process is a worker of pytest-xdist, which gets a network of its own."""
    global _is_worker
    _is_worker = hasattr(config, "workerinput")
    if _is_worker and not machine.is_fake():
        own_network.enter()


def pytest_runtest_logstart(nodeid: str) -> None:
    """Writes that a test begins."""
    _write(test=nodeid, state="begun")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Writes what came of a test's setup, call or teardown."""
    if report.failed:
        _write(test=report.nodeid, state="failed", **_failure(report))
    elif report.skipped:
        _write(test=report.nodeid, state="skipped", reason=_skip_reason(report))
    elif report.when == "call":
        _write(test=report.nodeid, state="passed")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Writes that a file could not be read or was skipped: its tests are not known then."""
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
    with Path(os.environ[OUTCOMES_VARIABLE]).open("a") as file:
        file.write(json.dumps(what) + "\n")
