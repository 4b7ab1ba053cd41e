"""Each loop of the zoo finds its boundaries by itself; its result is what it is alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e import zoo
from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]

# Boundaries that a loop of zoo.STEPS steps must have had: a job without boundaries never yields.
LEAST_ITERATIONS = dict.fromkeys(zoo.LOOPS, zoo.STEPS - 1) | {
    "evaluation": zoo.STEPS + 9 - 1,
    "caught_exception": 9 - 1,
    "caught_interrupt": 9 - 1,
    "caught_in_backward": 9 - 1,
    "no_optimizer": zoo.STEPS - 3,
    "optimizer_in_backward": zoo.STEPS - 3,
    "data_loader": 12 - 1,
}
CAUGHT = {"caught_exception": 3, "caught_interrupt": 3, "caught_in_backward": 3}
MOST_ITERATIONS = {"accumulation": zoo.STEPS + 1, "lbfgs": zoo.STEPS + 1, "plain": zoo.STEPS + 1}


@pytest.mark.parametrize("name", zoo.LOOPS)
def test_loop_is_bit_identical_with_spills_at_every_boundary(
    name: str, coordinator: Coordinator
) -> None:
    env = coordinator() | {"GPUSHARE_FORCE_SPILL": "1", "OMP_NUM_THREADS": "1"}
    module = "tests.e2e.zoo"
    with (
        JobProcess(name, env={"OMP_NUM_THREADS": "1"}, module=module) as alone,
        JobProcess(name, "--shared", env=env, module=module) as shared,
    ):
        reference, result = start_all([alone, shared])
    assert result["digest"] == reference["digest"]
    stats: dict[str, Any] = result["stats"]
    assert stats["is_managed"]
    assert stats["iterations"] >= LEAST_ITERATIONS[name]
    assert stats["iterations"] <= MOST_ITERATIONS.get(name, 10 * zoo.STEPS)
    assert stats["restored_total_bytes"] > 0
    # Each exception that the loop catches has closed a lease.
    assert stats["leases"] >= CAUGHT.get(name, 0)
