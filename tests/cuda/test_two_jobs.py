"""Two processes that do not fit on one device together train to the bits they train to alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cuda.conftest import MODULE, digest_alone
from tests.e2e.alone import arguments
from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

MIB = 1 << 20
STEPS = {"mlp": 8, "transformer": 6, "cnn": 8}


def _run_two(workload: str, optimizer: str, env: dict[str, str]) -> list[dict[str, Any]]:
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(
                    *arguments(workload, optimizer, seed, STEPS[workload]),
                    *("--device", "cuda", "--shared"),
                    env=env,
                    module=MODULE,
                )
            )
            for seed in (1, 2)
        ]
        return start_all(jobs)


# The device, less than the two need together.
CAPACITIES = {"mlp": 54 * MIB, "transformer": 80 * MIB, "cnn": 50 * MIB}


@pytest.mark.parametrize("workload", ["mlp", "transformer", "cnn"])
def test_results_equal_alone_while_memory_moves(
    workload: str, device: Callable[..., dict[str, str]], coordinator: Callable[..., dict[str, str]]
) -> None:
    env = device(CAPACITIES[workload]) | coordinator(
        min_quantum="0", policy="rr", switch_loss="0.5", require="1"
    )
    results = _run_two(workload, "adam", env)
    for seed, result in zip((1, 2), results, strict=True):
        assert result["digest"] == digest_alone(workload, "adam", seed, STEPS[workload], "cuda")
        assert result["digest"] == digest_alone(workload, "adam", seed, STEPS[workload], "cpu")
    assert sum(result["stats"]["leases"] for result in results) >= 4
    # A CNN's parameters are small beside its activations, which are dropped without a copy.
    moved = "dropped_total_bytes" if workload == "cnn" else "spilled_total_bytes"
    assert sum(result["stats"][moved] for result in results) > 0
