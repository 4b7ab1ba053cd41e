"""A job uses the device between its iterations and on another thread, while its memory moves."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cuda import fake
from tests.cuda.child import Parent, start
from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

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


def idles_in_the_gap(parent: Parent) -> dict[str, object]:
    """A child: its main thread runs code of its own, and no lease is wanted."""
    import torch

    import gpushare

    job = gpushare.register(name="idle")
    with job.iteration():
        tensor = torch.randn(16 << 20).cuda()

    def digest() -> str:
        return hashlib.sha256(tensor.cpu().numpy().tobytes()).hexdigest()

    before = digest()
    parent.say("idle")
    parent.hear()
    spilled_bytes = job.stats().spilled_bytes
    with job.iteration():
        is_same = digest() == before
    stays_bytes = job.stats().spilled_bytes
    violations = fake.violations()
    return {
        "spilled": spilled_bytes,
        "stays": stays_bytes,
        "is_same": is_same,
        "violations": violations,
    }


def test_memory_of_an_idle_job_moves_in_the_gap_if_that_is_asked_for(
    device_file: Path, coordinator: Callable[..., dict[str, str]]
) -> None:
    settings = coordinator(require="1", min_quantum="0")
    size = {"capacity_bytes": CAPACITY_BYTES, "device_file": device_file}
    idle = start(idles_in_the_gap, GPUSHARE_IDLE_SPILL="0.1s", **size, **settings)
    assert idle.hear() == "idle"
    env = fake.environment(**size) | settings
    with JobProcess("--steps", "2", "--poison", env=env, module=MODULE) as poison:
        result = poison.wait_ready().go().result()
    assert (result["error"], result["num_wrong"]) == ("", 0)
    idle.say("go on")
    result = idle.result()
    assert result["spilled"] > 0, "it was there all the time"
    assert result["stays"] == 0
    assert (result["is_same"], result["violations"]) == (True, [])


@functools.cache
def _digest_alone() -> str:
    """The trainer's on stock torch."""
    env = fake.environment() | {"GPUSHARE_DISABLE": "1"}
    with JobProcess("--steps", str(STEPS), env=env, module=MODULE) as job:
        digest: str = job.wait_ready().go().result()["digest"]
        return digest
