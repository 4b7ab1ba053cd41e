"""Fixtures of the tests on the fake CUDA device: real processes that share it, or have it alone."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import gpushare_command, job_environment
from tests.cuda import fake
from tests.e2e.alone import arguments
from tests.support import forked
from tests.support.coordinators import coordinator, pytest_runtest_makereport
from tests.support.job_process import JobProcess

# What the tests ask of a coordinator is Python alone, so any gpushare does that this Python has;
# the one that their jobs have, if there is no other.
sys.path.append(str(fake.package()))

__all__ = ["coordinator", "pytest_runtest_makereport"]  # a fixture, a hook

MODULE = "tests.cuda.job"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without the fake there is nothing to run on: `make test-cuda` builds it."""
    if (fake.folder() / "libfakecuda_ops.so").exists():
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"no fake device in {fake.folder()}"))


@pytest.fixture
def device_file(tmp_path: Path) -> Iterator[Path]:
    """A device for several processes, in memory where there is such a file system."""
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else tmp_path
    path = folder / f"fakecuda-{os.getpid()}-{tmp_path.name}"
    yield path
    path.unlink(missing_ok=True)


@pytest.fixture
def device(device_file: Path) -> Callable[..., dict[str, str]]:
    """device(capacity_bytes, late=True, ...) -> the environment of processes that share one."""

    def make(capacity_bytes: int, **more: Any) -> dict[str, str]:
        return fake.environment(capacity_bytes=capacity_bytes, device_file=device_file, **more)

    return make


@functools.cache
def digest_alone(workload: str, optimizer: str, seed: int, steps: int, device: str) -> str:
    """What the training run computes alone on stock torch, on the CPU or the fake device."""
    flags = [*arguments(workload, optimizer, seed, steps), "--device", device]
    env = fake.environment() | {"GPUSHARE_DISABLE": "1"}
    with JobProcess(*flags, env=env, module=MODULE) as job:
        digest: str = job.wait_ready().go().result()["digest"]
        return digest


def run_module(module: str, env: dict[str, str]) -> dict[str, Any]:
    """What a module says in its last line, a JSON object, and its stderr."""
    done = forked.run(["-m", module], job_environment(env))
    assert done.returncode == 0, f"ended with {done.returncode}: {done.stderr[-4000:]}"
    return json.loads(done.stdout.splitlines()[-1]) | {"stderr": done.stderr}


@pytest.fixture
def home() -> Iterator[dict[str, str]]:
    """Coordinators where a user's are by default, one a device, ended with the test."""
    # pytest's own folders have names too long for a socket.
    with tempfile.TemporaryDirectory(prefix="gpushare-") as folder:
        env = {"XDG_RUNTIME_DIR": folder, "GPUSHARE_LINGER": "0", "GPUSHARE_REQUIRE": "1"}
        yield env
        stop = gpushare_command("coordinator", "stop", "--force")
        subprocess.run(stop, env=fake.environment() | env, capture_output=True, check=False)
