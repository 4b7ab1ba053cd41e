"""Fixtures of the GPU tests: real processes on this machine's device, or on the fake one."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.device import machine
from benchmarks.processes import ROOT, JobProcess, job_environment, private_coordinator
from tests.e2e.alone import arguments
from tests.e2e.conftest import start_all

MODULE = "tests.gpu.job"
PRELUDE = """
import json
import gpushare
from gpushare import _native
import torch
from benchmarks.device import machine
machine.start()
torch.use_deterministic_algorithms(True, warn_only=True)
def spill():
    _native.load().spill_and_restore()
def spill_what_moves():
    # A graph's memory stays, and is what the error is about.
    try:
        spill()
    except gpushare.errors.GpushareError as error:
        assert "no more memory that may move is resident" in str(error)
def say(**what):
    print(json.dumps(what), flush=True)
"""
# A thread of torch's lets go of a backward pass with the GIL, after the pass has returned. Before
# Python 3.14 a process that ends at that moment aborts, whoever trains in it.
POSTLUDE = """
import time
time.sleep(0.5)
"""
Run = Callable[..., dict[str, Any]]
PROGRAM_SECONDS = machine.size(55, 140)
"""Less than the device suite gives a test, so that its failure says what the program wrote."""

# cuBLAS gives the same bits each time only with workspaces of a fixed size.
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks them all; where there is no device each says so."""
    reason = machine.missing()
    for item in items:
        if Path(__file__).parent not in item.path.parents:
            continue
        item.add_marker(pytest.mark.gpu)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def needs_kernels() -> None:
    """For tests of what only a GPU does."""
    if machine.is_fake():
        pytest.skip("the fake device runs no kernels of its own, and its graphs do nothing")


@pytest.fixture
def device() -> Iterator[dict[str, str]]:
    """The environment of processes that share the device."""
    with machine.device() as env:
        yield env


@pytest.fixture
def run(device: dict[str, str]) -> Run:
    """run(program, capacity="1GiB", ...) -> what the program says last, as a job of its own.

    With stock=True the program runs without gpushare, which then registers nothing.
    """

    def run_one(program: str, *, stock: bool = False, **settings: str) -> dict[str, Any]:
        with private_coordinator(**{"require": "1", **settings}) as gpushare_env:
            env = device | ({"GPUSHARE_DISABLE": "1"} if stock else gpushare_env)
            done = subprocess.run(
                [sys.executable, "-c", PRELUDE + textwrap.dedent(program) + POSTLUDE],
                env=job_environment(env),
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=PROGRAM_SECONDS,
                check=False,
            )
        assert done.returncode == 0, f"it ended with {done.returncode}:\n{done.stderr[-4000:]}"
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said

    return run_one


def training(workload: str, seed: int, steps: int) -> list[str]:
    """The command line of tests.gpu.job for a run on the device."""
    return [*arguments(workload, "adam", seed, steps), "--device", "cuda"]


def digests_on_stock(
    env: dict[str, str], workload: str, seeds: Sequence[int], steps: int
) -> list[str]:
    """What stock torch computes on the device, whose memory suffices for all of them at once."""
    with contextlib.ExitStack() as stack:
        stock = env | {"GPUSHARE_DISABLE": "1"}
        flags = [training(workload, seed, steps) for seed in seeds]
        jobs = [stack.enter_context(JobProcess(*each, env=stock, module=MODULE)) for each in flags]
        return [result["digest"] for result in start_all(jobs)]


def peak_alone(env: dict[str, str], workload: str, steps: int) -> int:
    """The most bytes that it has backed at once, with room for all."""
    with private_coordinator(require="1") as gpushare_env:
        flags = [*training(workload, 1, steps), "--shared"]
        with JobProcess(*flags, env=env | gpushare_env, module=MODULE) as job:
            peak: int = job.wait_ready().go().result()["stats"]["peak_backed_bytes"]
            return peak
