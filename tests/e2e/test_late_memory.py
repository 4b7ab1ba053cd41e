"""Jobs whose optimizer state comes back to the device after the iteration has begun."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]

LOOP = "state_of_optimizers"


def run_loops(env: dict[str, str], count: int, *flags: str) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        return start_all(
            [
                stack.enter_context(JobProcess(LOOP, *flags, env=env, module="tests.e2e.zoo"))
                for _ in range(count)
            ]
        )


def test_jobs_that_do_not_fit_together_use_their_optimizers_state_as_alone(
    coordinator: Coordinator,
) -> None:
    (alone,) = run_loops({}, 1)
    (roomy,) = run_loops(coordinator(), 1, "--shared")
    # Less than what one job keeps, half of its peak, and the other's peak. At 1.5 times the peak
    # the two fit in some runs, since jobs of one user share a lane's unused memory.
    capacity = int(1.25 * roomy["stats"]["peak_backed_bytes"])
    env = coordinator(capacity=str(capacity), min_quantum="0", policy="rr", switch_loss="0.5")
    results = run_loops(env, 2, "--shared")
    assert [result["digest"] for result in results] == [alone["digest"]] * 2
    assert sum(result["stats"]["leases"] for result in results) >= 4
    assert sum(result["stats"]["spilled_total_bytes"] for result in results) > 0
