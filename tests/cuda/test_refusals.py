"""What keeps gpushare from a CUDA device is said in one line, and fatal only where asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.processes import read_status
from tests.cuda import fake
from tests.cuda.child import Parent, start
from tests.cuda.programs import run, said_by_gpushare

MIB = 1 << 20
UNREACHABLE = 3
Coordinator = Callable[..., dict[str, str]]

JOB = """
import gpushare, torch
{before}
job = gpushare.register()
{after}
print(job.is_managed)
"""
ALLOCATE = 'torch.empty(1000, device="cuda")'

OLD_TESTS = 'import gpushare._torch.cuda; gpushare._torch.cuda.TESTED_TORCH = ("2.99",)'
PLUGGABLE = """
import os
from torch.cuda.memory import CUDAPluggableAllocator, change_current_allocator
library = os.environ["FAKECUDA_LIBRARIES"] + "/libcuda.so.1"
change_current_allocator(CUDAPluggableAllocator(library, "cudaMalloc", "cudaFree"))
"""
NO_DRIVER = {"LD_PRELOAD": "", "GPUSHARE_DEVICE": "cuda"}


@pytest.mark.parametrize(
    ("variables", "before", "reason"),
    [
        (
            {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync"},
            "",
            "PYTORCH_ALLOC_CONF sets backend:cudaMallocAsync, which takes its memory past",
        ),
        (
            {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64, backend:cudaMallocAsync"},
            "",
            "PYTORCH_CUDA_ALLOC_CONF sets backend:cudaMallocAsync, which takes its memory past",
        ),
        ({}, PLUGGABLE, "torch's CUDA allocator is pluggable: gpushare supplies the segments"),
        (
            {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64, release_lock_on_cudamalloc : False"},
            "",
            "release_lock_on_cudamalloc is off in PYTORCH_ALLOC_CONF: gpushare needs it on",
        ),
        (
            {"GPUSHARE_ANY_TORCH": "0"},
            OLD_TESTS,
            "was not tested with gpushare on CUDA (tested: 2.99); GPUSHARE_ANY_TORCH=1",
        ),
        (NO_DRIVER, "", "torch cannot start CUDA: Found no NVIDIA driver on your system"),
        (
            {"FAKECUDA_DRIVER_VERSION": "11000"},
            "",
            "the CUDA driver is too old: it is of CUDA 11.0",
        ),
    ],
    ids=["async", "its-old-name", "pluggable", "lock", "torch", "no-driver", "old"],
)
def test_one_line_says_why_a_job_goes_on_unmanaged(
    variables: dict[str, str], before: str, reason: str, coordinator: Coordinator
) -> None:
    env = fake.environment() | coordinator() | variables
    ended = run("-c", JOB.format(before=before, after=""), env=env)
    assert (ended.returncode, ended.stdout) == (0, "False\n"), ended.stderr
    (line,) = said_by_gpushare(ended)
    assert reason in line
    assert line.endswith(". Training goes on unmanaged. GPUSHARE_REQUIRE=1 makes this fatal")


@pytest.mark.parametrize(
    "before", ["", ALLOCATE], ids=["in register", "at the first use of the device"]
)
def test_where_a_coordinator_is_required_that_line_is_the_last(
    before: str, coordinator: Coordinator
) -> None:
    env = fake.environment(PYTORCH_ALLOC_CONF="backend:cudaMallocAsync")
    program = JOB.format(before=before, after="")
    ended = run("-c", program, env=env | coordinator(require="1"))
    assert (ended.returncode, ended.stdout) == (UNREACHABLE, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("gpushare: PYTORCH_ALLOC_CONF sets backend:cudaMallocAsync, ")
    assert line.endswith(". GPUSHARE_REQUIRE=1 makes this fatal")


def test_a_refused_job_has_torchs_own_memory(coordinator: Coordinator) -> None:
    env = fake.environment(PYTORCH_CUDA_ALLOC_CONF="release_lock_on_cudamalloc:False")
    after = f"{ALLOCATE}; print(torch.cuda.memory_reserved())"
    ended = run("-c", JOB.format(before="", after=after), env=env | coordinator())
    assert ended.stdout.split() == [str(2 * MIB), "False"], ended.stderr


SEGMENTS = """
torch.empty(1000, device="cuda")
print(any(segment["is_expandable"] for segment in torch.cuda.memory_snapshot()))
"""


def test_expandable_segments_are_switched_off_and_a_line_says_so(coordinator: Coordinator) -> None:
    env = fake.environment(PYTORCH_ALLOC_CONF="max_split_size_mb:64, expandable_segments : True")
    ended = run("-c", JOB.format(before="", after=SEGMENTS), env=env | coordinator(require="1"))
    assert (ended.returncode, ended.stdout) == (0, "False\nTrue\n"), ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("gpushare: expandable_segments:True of PYTORCH_ALLOC_CONF is switched ")


def test_an_untested_torch_may_be_tried(coordinator: Coordinator) -> None:
    env = fake.environment(GPUSHARE_ANY_TORCH="1") | coordinator(require="1")
    ended = run("-c", JOB.format(before=OLD_TESTS, after=ALLOCATE), env=env)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


def test_settings_of_torch_may_have_blanks(coordinator: Coordinator) -> None:
    conf = "max_split_size_mb : 64 , release_lock_on_cudamalloc : True"
    env = fake.environment(PYTORCH_ALLOC_CONF=conf) | coordinator(require="1")
    ended = run("-c", JOB.format(before="", after=ALLOCATE), env=env)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


@pytest.mark.parametrize("overflow", ["0", "1"])
def test_settings_without_effect_on_cuda_are_named_once(
    overflow: str, coordinator: Coordinator
) -> None:
    env = fake.environment(capacity_bytes=64 * MIB, FAKECUDA_HOST_NUMA="0")
    env |= coordinator(require="1", overflow=overflow, lane_strict=overflow)
    after = 'torch.empty(128 << 20, dtype=torch.uint8, device="cuda")'
    ended = run("-c", JOB.format(before=ALLOCATE, after=after), env=env)
    assert "torch.OutOfMemoryError" in ended.stderr
    named = [line for line in said_by_gpushare(ended) if "no effect" in line]
    expected = [
        "gpushare: GPUSHARE_OVERFLOW: no effect, since this CUDA device cannot use memory of the "
        "host in place, or GPUSHARE_REACHABLE=off forbids it",
        "gpushare: GPUSHARE_LANE_STRICT: no effect on a CUDA device, where no memory is shared "
        "between iterations",
    ]
    assert named == (expected if overflow == "1" else [])


def test_without_a_driver_the_cpu_is_shared_and_nothing_said(coordinator: Coordinator) -> None:
    env = fake.environment(LD_PRELOAD="") | coordinator(require="1")
    after = "from gpushare import _native; print(_native.device())"
    ended = run("-c", JOB.format(before="", after=after), env=env)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "cpu\nTrue\n", "")


EXPANDABLE_LATER = """
import gpushare, torch
from tests.cuda import fake
fake.install_ops()
job = gpushare.register()
with job.iteration():
    before = torch.full((1 << 20,), 3.0, device="cuda")
torch.cuda.memory._set_allocator_settings("expandable_segments:True")
with job.iteration():
    after = torch.full((8 << 20,), 5.0, device="cuda")
job.park()
with job.iteration():
    print(before.sum().item(), after.sum().item(), fake.violations())
job.park()
"""


def test_expandable_segments_are_noticed_when_they_come_later(coordinator: Coordinator) -> None:
    env = fake.environment(capacity_bytes=256 * MIB) | coordinator(require="1")
    ended = run("-c", EXPANDABLE_LATER, env=env)
    assert ended.stdout == f"{3.0 * (1 << 20)} {5.0 * (8 << 20)} []\n", ended.stderr
    (line,) = said_by_gpushare(ended)  # once
    assert line.startswith("gpushare: torch's allocator has expandable segments, from before ")


@pytest.mark.parametrize(("reserve", "kept_mib"), [("", 102), ("256MiB", 256), ("0", 0)])
def test_of_a_whole_device_a_part_is_kept_for_drivers(
    reserve: str, kept_mib: int, device: Callable[..., dict[str, str]], coordinator: Coordinator
) -> None:
    env = device(1024 * MIB) | coordinator(require="1", linger="60s")
    env |= {"GPUSHARE_RESERVE": reserve}
    assert run("-c", JOB.format(before="", after=ALLOCATE), env=env).stdout == "True\n"
    (found,) = read_status(env)["devices"]
    assert found["capacity_bytes"] == (1024 - kept_mib) * MIB


def test_the_second_coordinator_of_a_device_is_refused(
    device: Callable[..., dict[str, str]], coordinator: Coordinator
) -> None:
    env = device(256 * MIB)
    first, second = coordinator(require="1"), coordinator(require="1")
    program = JOB.format(before="", after=ALLOCATE)
    assert run("-c", program, env=env | first | {"GPUSHARE_LINGER": "60s"}).stdout == "True\n"
    pid = read_status(env | first)["coordinator"]["pid"]
    ended = run("-c", program, env=env | second)
    assert (ended.returncode, ended.stdout) == (UNREACHABLE, "")
    (line,) = ended.stderr.splitlines()
    assert f"another coordinator, pid {pid}, socket {first['GPUSHARE_SOCKET']}, has this" in line


def holds(parent: Parent, num_bytes: int) -> None:
    """A child that is no job, and keeps memory of the device until it is told to end."""
    import torch

    held = torch.empty(num_bytes, dtype=torch.uint8, device="cuda")
    parent.say(held.numel())
    parent.hear()


def test_a_device_without_room_for_a_context_is_the_reason_that_is_given(
    device_file: Path, coordinator: Coordinator
) -> None:
    device = {"capacity_bytes": 64 * MIB, "context_bytes": 8 * MIB, "device_file": device_file}
    holder = start(holds, 52 * MIB, GPUSHARE_DISABLE="1", **device)
    holder.hear()
    env = fake.environment(**device) | coordinator()
    ended = run("-c", JOB.format(before="", after=""), env=env)
    holder.say("end")
    holder.result()
    assert (ended.returncode, ended.stdout) == (0, "False\n"), ended.stderr
    reason, what_now = said_by_gpushare(ended)
    assert "retain the context of CUDA device 0: CUDA_ERROR_OUT_OF_MEMORY" in reason
    assert what_now.endswith("GPUSHARE_REQUIRE=1 makes this fatal")
