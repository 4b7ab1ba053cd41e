"""pytest's part of the device suite: a part for each file of tests/gpu, in an order of their own.

pytest-timeout and pytest-xdist are used where the machine has them: the one ends a test that hangs
and goes on with the next, the other runs four at a time. (Each test has a coordinator of its own,
and little memory.) Without them a test that hangs ends its part; what came of the tests before it
is known all the same (outcome_log.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.device import build, machine

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
"""Seconds for each, at most. What matters most is first; MPS is last, since what is left of its
server would slow down or break what comes after it."""
UNREACHABLE_FIRST = ("moving", "two_jobs")
"""Run with GPUSHARE_REACHABLE=0 before everything else."""
TEST_SECONDS = 60
AT_ONCE = 4


def path_of(name: str) -> str:
    """Of the file of tests."""
    return f"tests/gpu/test_{name}.py"


def command(*arguments: str) -> list[str]:
    """The command line of pytest with these arguments, which are files and options."""
    words = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    # Versions that nobody has tried may warn of anything: that must not cost the results.
    words += ["-W", "default", "-p", "benchmarks.device.outcome_log"]
    if build.has_module("pytest_timeout"):
        seconds = TEST_SECONDS * (5 if machine.is_fake() else 1)
        words += ["-p", "timeout", f"--timeout={seconds}", "--timeout-method=signal"]
    if build.has_module("xdist"):
        words += ["-p", "xdist", "-n", str(min(AT_ONCE, build.cores()))]
    return [*words, *arguments]


def cpp_arguments() -> list[str]:
    """The C++ tests, which need nothing that the other files' fixtures import."""
    return ["--noconftest", path_of("cpp")]


def outcomes_file(folder: Path, name: str) -> Path:
    """Where a part's outcomes are; a name may have any characters."""
    return folder / ("".join(c if c.isalnum() else "-" for c in name) + ".jsonl")
