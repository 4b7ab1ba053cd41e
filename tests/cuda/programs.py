"""Runs a small program to its end on the fake device: what it wrote, and how it ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cuda import fake
from tests.support import forked

TIMEOUT_SECONDS = 120


def run(*words: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs this Python with `words`; `env` is the whole environment. Any end is an answer."""
    return subprocess.run(
        [sys.executable, "-W", "ignore::UserWarning", *words],
        env=dict(env) | {"GPUSHARE_REPORT": "0"},
        cwd=fake.ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def said_by_gpushare(finished: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines that gpushare wrote to stderr."""
    return [line for line in finished.stderr.splitlines() if line.startswith("gpushare: ")]


def run_to_end(
    command: list[str], env: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Runs a command in a folder; `env` is all of its environment. It must end well.

    A script of its own, which is stock torch, is forked; `gpushare run` starts anew what it runs.
    """
    if command[0] == sys.executable and command[1].endswith(".py"):
        done = forked.run(command[1:], env, cwd=folder)
    else:
        done = subprocess.run(
            command, env=env, cwd=folder, capture_output=True, text=True, timeout=180, check=False
        )
    assert done.returncode == 0, done.stderr
    return done


def lines_in(finished: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The JSON objects that it wrote to stdout, a line each."""
    return lines_in_text(finished.stdout)


def lines_in_text(text: str) -> list[dict[str, Any]]:
    """The JSON objects of a text, a line each."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def lines_of(command: list[str], env: dict[str, str], folder: Path) -> list[dict[str, Any]]:
    """Runs a command as `run_to_end`, and returns what `lines_in` finds."""
    return lines_in(run_to_end(command, env, folder))
