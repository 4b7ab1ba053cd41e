"""Jobs that leave work pending train to the bits they train to alone, and nothing is overtaken.

The device completes work as late as the program lets it, and says who touches memory out of order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.processes import private_coordinator
from tests.cuda import fake
from tests.cuda.conftest import run_module
from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

MODULE = "tests.cuda.late_job"
STEPS = 5
MIB = 1 << 20

Environment = Callable[..., dict[str, str]]


def _flags(seed: int) -> list[str]:
    return ["--seed", str(seed), "--steps", str(STEPS)]


@functools.cache
def _alone(seed: int) -> dict[str, Any]:
    env = fake.environment() | {"GPUSHARE_DISABLE": "1"}
    with JobProcess(*_flags(seed), env=env, module=MODULE) as job:
        result: dict[str, Any] = job.wait_ready().go().result()
        return result


@pytest.mark.parametrize("reachable", ["on", "auto", "off"])
def test_a_job_that_moves_at_every_boundary_waits_for_all_that_is_pending(
    device: Environment, coordinator: Environment, reachable: str
) -> None:
    settings = coordinator(require="1", force_spill="1", reachable=reachable)
    env = device(512 * MIB, late=True) | settings
    with JobProcess(*_flags(1), "--shared", env=env, module=MODULE) as job:
        result = job.wait_ready().go().result()
    assert result["violations"] == []
    assert result["digest"] == _alone(1)["digest"]
    assert result["most_pending"] > 0, "the boundaries found nothing to wait for"
    assert result["stats"]["restored_total_bytes"] > STEPS * 8 * MIB


def test_two_jobs_on_a_small_device_wait_for_all_that_is_pending(
    device: Environment, coordinator: Environment
) -> None:
    env = device(64 * MIB, late=True) | coordinator(
        min_quantum="0", policy="rr", switch_loss="0.5", require="1"
    )
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(JobProcess(*_flags(seed), "--shared", env=env, module=MODULE))
            for seed in (1, 2)
        ]
        results = start_all(jobs)
    for seed, result in zip((1, 2), results, strict=True):
        assert result["violations"] == []
        assert result["digest"] == _alone(seed)["digest"]
    assert sum(result["stats"]["spilled_total_bytes"] for result in results) > 0


@pytest.fixture(scope="module")
def closing(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a job says that closes its lease under pending work."""
    file = tmp_path_factory.mktemp("device") / "memory"
    with private_coordinator(require="1") as coordinator:
        env = fake.environment(capacity_bytes=64 * MIB, device_file=file, late=True) | coordinator
        return run_module("tests.cuda.closing_job", env)


def test_a_lease_closes_on_an_idle_device(closing: dict[str, Any]) -> None:
    first, after_first, second, after_second, _ = closing["pending"]
    assert first > 0
    assert second > 0
    assert after_first == 0
    assert after_second == 0, "the wait without the lock failed, the other one did not"
    assert closing["num_waits"] == 2, "without the lock, and under it"


def test_a_lease_that_closes_does_not_break_a_capture(closing: dict[str, Any]) -> None:
    assert closing["capture_error"] == ""


def test_what_the_gap_left_pending_is_waited_for_before_memory_moves(
    closing: dict[str, Any],
) -> None:
    assert closing["pending"][-1] > 0
    assert closing["value"] == 5.0
    assert closing["violations"] == []
