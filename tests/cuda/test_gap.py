"""A job uses the device between its iterations and on another thread, while its memory moves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from benchmarks.processes import JobProcess
from tests.cuda import fake
from tests.e2e.conftest import start_all

MIB = 1 << 20
MODULE = "tests.cuda.gap_job"
STEPS = 20


# Less than the two need at once, even if nothing is kept that could be dropped: so the trainer's
# parameters leave. More than the poison and what the trainer makes in the gap, which stays.
CAPACITY_BYTES = 100 * MIB


@pytest.mark.parametrize("flags", [(), ("--marked",)], ids=["hooks", "marked"])
def test_nobody_sees_a_foreign_byte_and_nothing_faults(
    flags: tuple[str, ...],
    device: Callable[..., dict[str, str]],
    coordinator: Callable[..., dict[str, str]],
) -> None:
    env = device(CAPACITY_BYTES, late=True) | coordinator(
        min_quantum="0", policy="rr", switch_loss="0.5", require="1"
    )
    commands = [("--steps", str(STEPS), *flags), ("--steps", str(2 * STEPS), "--poison")]
    with ExitStack() as stack:
        jobs = [JobProcess(*command, env=env, module=MODULE) for command in commands]
        trainer, poisoner = start_all([stack.enter_context(job) for job in jobs])
    for result in (trainer, poisoner):
        assert (result["error"], result["num_wrong"], result["violations"]) == ("", 0, [])
    assert trainer["digest"] == _digest_alone()
    assert trainer["num_stray"] > 0
    assert trainer["stats"]["leases"] > 1
    assert trainer["stats"]["spilled_total_bytes"] > 0


@functools.cache
def _digest_alone() -> str:
    """The trainer's on stock torch."""
    env = fake.environment() | {"GPUSHARE_DISABLE": "1"}
    with JobProcess("--steps", str(STEPS), env=env, module=MODULE) as job:
        digest: str = job.wait_ready().go().result()["digest"]
        return digest
