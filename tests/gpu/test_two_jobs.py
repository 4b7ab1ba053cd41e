"""Two processes that do not fit on the device together train to the bits they train to alone."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack

import pytest

from benchmarks.processes import JobProcess, private_coordinator
from tests.e2e.conftest import start_all
from tests.gpu.conftest import MODULE, digests_on_stock, peak_alone, training

STEPS = 8
TURNS = {"min_quantum": "0", "policy": "rr", "switch_loss": "0.5", "require": "1"}


@pytest.mark.parametrize("workload", ["mlp", "transformer", "cnn"])
def test_results_equal_alone_while_memory_moves(workload: str, device: dict[str, str]) -> None:
    capacity = peak_alone(device, workload, 3) * 5 // 4
    with ExitStack() as stack:
        env = device | stack.enter_context(private_coordinator(capacity=str(capacity), **TURNS))
        jobs = [
            stack.enter_context(
                JobProcess(*training(workload, seed, STEPS), "--shared", env=env, module=MODULE)
            )
            for seed in (1, 2)
        ]
        results = start_all(jobs)
    digests = [result["digest"] for result in results]
    assert digests == digests_on_stock(device, workload, (1, 2), STEPS)
    assert sum(result["stats"]["leases"] for result in results) >= 4
    # A CNN's parameters are small beside its activations, which are dropped without a copy.
    moved = "dropped_total_bytes" if workload == "cnn" else "spilled_total_bytes"
    assert sum(result["stats"][moved] for result in results) > 0


def test_a_killed_job_harms_nobody(device: dict[str, str]) -> None:
    capacity = peak_alone(device, "mlp", 3) * 5 // 4
    with private_coordinator(capacity=str(capacity), **TURNS) as gpushare_env:
        env = device | gpushare_env
        flags = [*training("mlp", 1, 10_000), "--shared", "--progress"]
        with (
            JobProcess(*flags, env=env, module=MODULE) as victim,
            JobProcess(*training("mlp", 2, 20), "--shared", env=env, module=MODULE) as other,
        ):
            for job in (victim, other):
                job.wait_ready()
            victim.go()
            while "step" not in victim.say():
                pass
            other.go()
            os.kill(victim.pid, signal.SIGKILL)
            result = other.result()
    assert [result["digest"]] == digests_on_stock(device, "mlp", (2,), 20)
