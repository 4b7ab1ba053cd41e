"""What moves while another job computes, and nobody waits for, keeps to the transfer budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from tests.e2e.asking import status
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]

MIB = 1 << 20
PATIENCE_SECONDS = 60.0


def start(stack: ExitStack, env: dict[str, str], mib: int, iterations: int) -> JobProcess:
    flags = ["--mib", str(mib), "--iterations", str(iterations)]
    return stack.enter_context(JobProcess(*flags, env=env, module="tests.e2e.transfer_job"))


def iterate(job: JobProcess) -> None:
    """One iteration, and its end without a lease."""
    assert job.go().say()["is_intact"]
    assert job.go().say()["has_left"]


def wait_for_row(
    env: dict[str, str], job: JobProcess, is_so: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        rows = {row["pid"]: row for row in status(env)["devices"][0]["jobs"]}
        if is_so(rows[job.pid]):
            return rows[job.pid]
        time.sleep(0.02)
    pytest.fail(f"not in {PATIENCE_SECONDS} s: {rows[job.pid]}")


def test_a_restore_ahead_of_a_lease_is_held_back_until_the_lease(coordinator: Coordinator) -> None:
    env = coordinator(capacity="500MiB", transfer_budget="1MiB", lanes="off")
    with ExitStack() as stack:
        holder = start(stack, env, 64, 4).wait_ready()
        for _ in range(3):  # until what it needs is known
            iterate(holder)
        waiter = start(stack, env, 256, 2).wait_ready()
        iterate(waiter)
        assert holder.go().say()["is_intact"]  # and stays in its iteration
        waiter.go()
        wait_for_row(env, waiter, lambda row: row["state"] == "waiting")
        # It waits for the waiter's memory, so that is no matter of the budget.
        starting = start(stack, env, 256, 0).wait_ready()
        assert starting.go().result()["is_intact"]
        # There is room now, and at this rate the way back takes longer than a minute.
        row = wait_for_row(env, waiter, lambda row: row["is_held_back"])
        assert row["transfer_bytes_per_second"] == MIB
        assert row["room_bytes"] >= 256 * MIB
        assert row["spilled_bytes"] >= 60 * MIB
        assert holder.go().say()["has_left"]
        entered = waiter.say()
        assert entered == {"is_intact": True, "spilled_bytes": 0}
        assert waiter.go().say()["has_left"]
        for job in (holder, waiter):
            job.result()
