"""Runs a small program to its end on the fake device: what it wrote, and how it ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from tests.cuda import fake

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
