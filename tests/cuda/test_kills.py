"""A process that dies holding memory of the device harms nobody: its bytes come back.

The device and its coordinator are shared with a second job, which trains to the end meanwhile.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from benchmarks.processes import job_environment
from tests.cuda.conftest import MODULE, digest_alone
from tests.e2e.alone import arguments
from tests.e2e.asking import status
from tests.support.job_process import JobProcess

MIB = 1 << 20
STEPS = 8
# The device, less than the two need together.
CAPACITY = 80 * MIB

Environment = Callable[..., dict[str, str]]

# Where it dies, as FAKECUDA_FAIL has it.
DEATHS = {
    "holding_its_lease": "cuMemCreate:6",  # the last one of a job that nothing is taken from
    "in_a_spill": "cuMemcpyDtoHAsync:2",
    "in_a_restore": "cuMemcpyHtoDAsync:2",
}


def _job(seed: int, env: dict[str, str]) -> JobProcess:
    flags = arguments("mlp", "adam", seed, STEPS)
    return JobProcess(*flags, "--device", "cuda", "--shared", env=env, module=MODULE)


def _used_by(pid: int, env: dict[str, str]) -> int:
    """Bytes of the device that the process holds."""
    program = f"from tests.cuda import fake; print(fake.used_bytes_by({pid}))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=job_environment(env),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def _wait_until_spilled(job: JobProcess, env: dict[str, str]) -> None:
    """Until it waits for its turn, and some of its memory is in the host tier."""
    while True:
        rows = [row for row in status(env)["devices"][0]["jobs"] if row["pid"] == job.pid]
        if rows and rows[0]["state"] == "waiting" and rows[0]["spilled_bytes"] > 0:
            return
        assert job.process.poll() is None, "it ended before it was ever spilled"
        time.sleep(0.01)


# Has all that is free of the device from one line of stdin to the next.
_STRANGER = """
import ctypes, sys
from tests.cuda import fake
driver = ctypes.CDLL(str(fake.folder() / "libcuda.so.1"))
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
sys.stdin.readline()
left = int(sys.argv[1]) - fake.used_bytes()
assert driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(left)) == 0
print(left, flush=True)
sys.stdin.readline()
"""


@contextmanager
def _stranger(env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", _STRANGER, str(CAPACITY)],
        env=job_environment(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as stranger:
        yield stranger
        stranger.communicate("end\n", timeout=60)


def _take_all(stranger: subprocess.Popen[str]) -> int:
    """Bytes that it has from now on."""
    assert stranger.stdin is not None
    assert stranger.stdout is not None
    stranger.stdin.write("take\n")
    stranger.stdin.flush()
    return int(stranger.stdout.readline())


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _start(*jobs: JobProcess) -> None:
    """Lets them go when all are ready."""
    for job in jobs:
        job.wait_ready()
    for job in jobs:
        job.go()


@pytest.fixture
def env(device: Environment, coordinator: Environment) -> dict[str, str]:
    return device(CAPACITY) | coordinator(
        min_quantum="0", policy="rr", switch_loss="0.5", require="1"
    )


@pytest.mark.parametrize("death", DEATHS)
def test_the_other_job_goes_on_when_one_dies(death: str, env: dict[str, str]) -> None:
    fatal = {"FAKECUDA_FAIL": f"{DEATHS[death]}:{-signal.SIGKILL}"}
    with _job(1, env | fatal) as victim, _job(2, env) as survivor:
        _start(victim, survivor)
        assert victim.process.wait(60) == -signal.SIGKILL
        assert _used_by(victim.pid, env) == 0
        result = survivor.result()
    assert result["digest"] == digest_alone("mlp", "adam", 2, STEPS, "cuda")


def test_the_other_job_goes_on_when_a_parked_one_is_killed(env: dict[str, str]) -> None:
    with _job(1, env) as victim, _job(2, env) as survivor:
        _start(victim, survivor)
        _wait_until_spilled(victim, env)
        victim.process.kill()
        victim.process.wait(60)
        assert _used_by(victim.pid, env) == 0
        result = survivor.result()
    assert result["digest"] == digest_alone("mlp", "adam", 2, STEPS, "cuda")


def test_memory_of_a_dead_job_that_the_device_still_has_is_waited_for(env: dict[str, str]) -> None:
    with _job(1, env) as victim, _job(2, env) as survivor:
        _start(victim, survivor)
        _wait_until_spilled(survivor, env)
        with _stranger(env) as stranger:
            with _stopped(status(env)["coordinator"]["pid"]):
                victim.process.kill()
                victim.process.wait(60)
                assert _take_all(stranger) > 0  # as if it were the dead one's still
            while "the device still has" not in survivor.errors():
                assert survivor.process.poll() is None, survivor.errors()
                time.sleep(0.01)
        result = survivor.result()
    assert result["digest"] == digest_alone("mlp", "adam", 2, STEPS, "cuda")
