"""Processes that are suspended, as Ctrl-Z does: the others go on, and so do they afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tests.e2e.alone import arguments, peak_alone
from tests.e2e.asking import row_of, status, wait_until
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]
Alone = Callable[..., dict[str, Any]]


def _start(stack: ExitStack, env: dict[str, str], seed: int, steps: int) -> JobProcess:
    flags = (*arguments("mlp", "adam", seed, steps), "--shared", "--progress")
    job = stack.enter_context(JobProcess(*flags, env=env))
    job.wait_ready().go()
    return job


def test_a_suspended_holder_keeps_nobody_from_its_turns(
    coordinator: Coordinator, alone: Alone
) -> None:
    # Both fit, so that the other has room for its iterations beside the one that stands still.
    env = coordinator(capacity="256MiB", min_quantum="20ms")
    with ExitStack() as stack:
        held, other = (_start(stack, env, seed, 60) for seed in (1, 2))
        held.say()
        os.kill(held.pid, signal.SIGSTOP)
        result = other.result()
        row = row_of(env, held)
        assert row["state"] == "suspended"
        assert f"kill -CONT {held.pid}" in row["explain"]
        assert "has been suspended" in status(env)["warnings"][0]["text"]
        iterations = row["iterations"]
        assert iterations < 60
        os.kill(held.pid, signal.SIGCONT)
        late = held.result()
    assert result["digest"] == alone("mlp", "adam", 2, 60)["digest"]
    assert late["digest"] == alone("mlp", "adam", 1, 60)["digest"]


def _stop_with_its_memory(env: dict[str, str], job: JobProcess) -> None:
    """Suspends the job when its memory is in place: in its turn, that is."""

    def is_stopped() -> bool:
        wait_until(lambda: row_of(env, job)["state"] == "running")
        os.kill(job.pid, signal.SIGSTOP)
        wait_until(lambda: row_of(env, job)["state"] == "suspended")
        row = row_of(env, job)
        has_memory: bool = row["resident_bytes"] > row["spilled_bytes"]
        if not has_memory:
            os.kill(job.pid, signal.SIGCONT)
        return has_memory

    wait_until(is_stopped)


def test_who_lacks_memory_of_a_suspended_job_waits(coordinator: Coordinator, alone: Alone) -> None:
    # The one that has its memory in place goes on for up to `max_wait`, some 12 iterations.
    steps = 120
    capacity = int(1.2 * peak_alone("mlp", "adam"))
    env = coordinator(
        capacity=str(capacity),
        min_quantum="0",
        policy="rr",
        switch_loss="0.5",
        lanes="off",
        memory_wait="1s",
        max_wait="0.1s",
    )
    with ExitStack() as stack:
        held, other = (_start(stack, env, seed, steps) for seed in (1, 2))
        held.say()
        other.say()
        _stop_with_its_memory(env, held)
        wait_until(lambda: "held by suspended jobs" in row_of(env, other).get("explain", ""))
        # Longer than it waits for anybody else.
        before = row_of(env, other)
        wait_until(lambda: row_of(env, other)["waited_seconds"] > before["waited_seconds"] + 2)
        assert row_of(env, other)["iterations"] == before["iterations"]
        os.kill(held.pid, signal.SIGCONT)
        results = [job.result()["digest"] for job in (held, other)]
    assert results == [alone("mlp", "adam", seed, steps)["digest"] for seed in (1, 2)]
