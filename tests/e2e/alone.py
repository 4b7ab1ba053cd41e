"""Reference results: a job alone on stock torch, each trained once a test session."""

from __future__ import annotations

import functools
from typing import Any

from benchmarks.processes import private_coordinator
from tests.support.job_process import JobProcess

# Few samples a batch: what the models compute takes most of a test's time.
BATCH_SIZES = {"mlp": 64, "cnn": 8, "transformer": 2, "lstm": 4}


def arguments(workload: str, optimizer: str, seed: int, steps: int) -> list[str]:
    """The command line of `benchmarks.job` for this training run.

    No warm-up: a job that waits for its start is not parked, and keeps what it has trained with.
    """
    flags = {
        "--workload": workload,
        "--optimizer": optimizer,
        "--batch-size": BATCH_SIZES[workload],
        "--seed": seed,
        "--steps": steps,
        "--warm-up": 0,
    }
    return [str(part) for pair in flags.items() for part in pair]


@functools.cache
def result_alone(workload: str, optimizer: str, seed: int, steps: int) -> dict[str, Any]:
    """Its last line: `digest` of losses and parameters, iteration times."""
    with JobProcess(*arguments(workload, optimizer, seed, steps)) as job:
        return job.wait_ready().go().result()


@functools.cache
def peak_alone(workload: str, optimizer: str) -> int:
    """Most bytes that the workload has backed at once, under gpushare with room for all."""
    flags = arguments(workload, optimizer, 0, 3)
    with private_coordinator() as env, JobProcess(*flags, "--shared", env=env) as job:
        peak: int = job.wait_ready().go().result()["stats"]["peak_backed_bytes"]
        return peak
