"""Jobs that fit together lend each other the gaps between their iterations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

ITERATIONS = 40


@pytest.mark.parametrize("policy", ["fair", "rr", "srtf", "priority"])
def test_a_lease_passes_on_in_each_gap(policy: str, coordinator: Callable[..., dict[str, str]]):
    # With turns of a second, two jobs of 1.6 s would have two or three leases each.
    env = coordinator(policy=policy, min_quantum="1s")
    flags = ("--seconds", "0.02", "--iterations", str(ITERATIONS))
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(JobProcess(*flags, env=env, module="tests.e2e.gaps_job"))
            for _ in range(2)
        ]
        results = start_all(jobs)
    assert all(result["leases"] >= ITERATIONS // 2 for result in results)
