"""Two jobs under MPS, whose daemon is started for them in a folder of its own and ended again."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.device import machine
from benchmarks.processes import JobProcess, private_coordinator
from tests.e2e.conftest import start_all
from tests.gpu.conftest import MODULE, digests_on_stock, peak_alone, training

CONTROL = "nvidia-cuda-mps-control"
STEPS = 8


def _tell(command: str, env: dict[str, str]) -> str:
    """What the control daemon answers."""
    done = subprocess.run(
        [CONTROL],
        input=command + "\n",
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout.strip()


@pytest.fixture
def mps() -> Iterator[dict[str, str]]:
    """The environment of processes under an MPS of their own."""
    if machine.is_fake():
        pytest.skip("the fake device has no MPS")
    if shutil.which(CONTROL) is None:
        pytest.skip(f"there is no {CONTROL}")
    # pytest's own folders have names too long for a socket.
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:
        env = {f"CUDA_MPS_{name}_DIRECTORY": f"{folder}/{name}" for name in ("PIPE", "LOG")}
        for path in env.values():
            Path(path).mkdir()
        started = subprocess.run(
            [CONTROL, "-d"],
            env=os.environ | env,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        if started.returncode != 0:
            pytest.skip(f"{CONTROL} -d ended with {started.returncode}: {started.stderr.strip()}")
        yield env
        _tell("quit", env)


def test_results_equal_alone_under_mps(device: dict[str, str], mps: dict[str, str]) -> None:
    capacity = peak_alone(device, "mlp", 3) * 5 // 4
    with ExitStack() as stack:
        gpushare_env = stack.enter_context(
            private_coordinator(
                capacity=str(capacity),
                min_quantum="0",
                policy="rr",
                switch_loss="0.5",
                require="1",
            )
        )
        jobs = [
            stack.enter_context(
                JobProcess(
                    *training("mlp", seed, STEPS),
                    "--shared",
                    env=device | mps | gpushare_env,
                    module=MODULE,
                )
            )
            for seed in (1, 2)
        ]
        results = start_all(jobs)
        servers = _tell("get_server_list", mps)
    if not servers:
        pytest.skip("no MPS server was started: CUDA did not reach the control daemon")
    assert [result["digest"] for result in results] == digests_on_stock(
        device, "mlp", (1, 2), STEPS
    )
    assert sum(result["stats"]["spilled_total_bytes"] for result in results) > 0
