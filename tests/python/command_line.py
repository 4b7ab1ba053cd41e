"""The command line in a process of its own, beside a coordinator that is faked or real."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.processes import private_coordinator
from tests.python.conftest import PACKAGE, Completed, clean_environment
from tests.support import forked

needs_daemon = pytest.mark.skipif(
    not os.access(PACKAGE / "bin" / "gpushared", os.X_OK), reason="gpushared is not built"
)


def gpushare(*arguments: str, socket: str) -> Completed:
    """Runs ``gpushare`` with the coordinator at that socket."""
    return subprocess.run(
        [sys.executable, "-m", "gpushare", *arguments],
        env=clean_environment(socket=socket, config=os.devnull),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def run_as_job(script: str) -> Completed:
    """Runs a script with a coordinator of its own, of 512 MiB."""
    with private_coordinator(capacity="512MiB") as env:
        return forked.run(["-c", script], clean_environment(report="0") | env, timeout=120)
