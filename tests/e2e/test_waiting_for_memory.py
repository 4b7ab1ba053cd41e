"""An allocation that waits for room says so, and Ctrl-C ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.processes import job_environment

Coordinator = Callable[..., dict[str, str]]

HOLDER = """
import sys, gpushare, torch
tensor = torch.ones(48 << 18)  # 48 MiB
with gpushare.register().hold():
    print("held", flush=True)
    sys.stdin.readline()
"""
WAITER = """
import gpushare, torch
try:
    torch.ones(32 << 18)
except KeyboardInterrupt:
    print("interrupted", torch.ones(2).sum().item(), flush=True)
"""


def _start(stack: ExitStack, script: str, env: dict[str, str]) -> subprocess.Popen[str]:
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", script],
            env=job_environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )
    stack.callback(process.kill)
    return process


def test_a_wait_for_room_says_so_and_is_interrupted(coordinator: Coordinator) -> None:
    env = coordinator(capacity="64MiB")
    with ExitStack() as stack:
        holder = _start(stack, HOLDER, env)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        waiter = _start(stack, WAITER, env)
        assert waiter.stderr is not None
        line = waiter.stderr.readline()
        while line and "waiting for" not in line:
            line = waiter.stderr.readline()
        assert "32.0 MiB of memory" in line
        waiter.send_signal(signal.SIGINT)
        said, _ = waiter.communicate(timeout=60)
        assert said == "interrupted 2.0\n"
        assert waiter.returncode == 0
        holder.communicate("end\n", timeout=60)
        assert holder.returncode == 0
