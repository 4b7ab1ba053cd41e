"""Jobs that do not fit together train to the bits they train to alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.kernel_books import KernelBooks
from tests.e2e.alone import arguments, peak_alone
from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]
Alone = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("workload", ["mlp", "cnn", "transformer", "lstm"])
def test_results_equal_alone_while_memory_moves(
    workload: str, optimizer: str, coordinator: Coordinator, alone: Alone
) -> None:
    capacity = int(1.2 * peak_alone(workload, optimizer))
    env = coordinator(capacity=str(capacity), min_quantum="0", policy="rr", switch_loss="0.5")
    # Long enough for what is shared to settle.
    steps = 40 if workload == "mlp" else 8
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(*arguments(workload, optimizer, seed, steps), "--shared", env=env)
            )
            for seed in (1, 2)
        ]
        results = start_all(jobs)
    for seed, result in zip((1, 2), results, strict=True):
        assert result["digest"] == alone(workload, optimizer, seed, steps)["digest"]
    assert sum(result["stats"]["leases"] for result in results) >= 4
    # A CNN's parameters are small beside its activations, which are dropped without a copy.
    moved = "dropped_total_bytes" if workload == "cnn" else "spilled_total_bytes"
    assert sum(result["stats"][moved] for result in results) > 0


def test_three_jobs_in_half_their_peaks_stay_within_the_budget(
    coordinator: Coordinator, alone: Alone
) -> None:
    steps, seeds = 40, (3, 4, 5)
    capacity = int(1.5 * peak_alone("mlp", "adam"))
    env = coordinator(capacity=str(capacity), min_quantum="0.02s", policy="rr", switch_loss="0.5")
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(*arguments("mlp", "adam", seed, steps), "--shared", "--books", env=env)
            )
            for seed in seeds
        ]
        for job in jobs:
            job.wait_ready()
        books = KernelBooks(jobs, every_seconds=0.1)
        books.start()
        for job in jobs:
            job.go()
        results = [job.result() for job in jobs]
        sums = books.stop()
    assert len(sums) >= 10
    assert max(sums) <= capacity
    for seed, result in zip(seeds, results, strict=True):
        assert result["digest"] == alone("mlp", "adam", seed, steps)["digest"]
        assert result["stats"]["leases"] >= 10
        assert result["stats"]["spilled_total_bytes"] > 0
        assert len(result["books"]) == steps
        assert all(0.98 * books <= kernel <= books for kernel, books in result["books"])
