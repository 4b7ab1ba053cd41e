"""A job larger than its limit goes on in host memory, where that is asked for, and comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from gpushare._coordinator.client import CoordinatorClient
from tests.cuda import fake
from tests.cuda.child import Parent, start
from tests.e2e.asking import status

MIB = 1 << 20
LIMIT_MIB = 64
# In segments of torch's of 20 MiB, two to each.
TENSOR_MIB = 8
NUM_TENSORS = 12


def overflows(parent: Parent) -> dict[str, object]:
    """A child: needs more than it may have."""
    import torch

    import gpushare

    job = gpushare.register(name="large")
    size = TENSOR_MIB << 18

    def are_intact(add: int) -> bool:
        return all(bool((each == i + add).all()) for i, each in enumerate(tensors))

    with job.iteration():
        try:
            tensors = [torch.full((size,), float(i), device="cuda") for i in range(NUM_TENSORS)]
        except torch.OutOfMemoryError as error:
            return {"error": str(error)}
        torch._foreach_add_(tensors, 1)
        is_intact = are_intact(1)
        said: dict[str, object] = {"overflow": job.stats().overflow_bytes}
    said["used"] = fake.used_bytes()
    parent.say(said)
    parent.hear()
    with job.iteration():  # the lease has not changed hands: nothing moves
        said["stays"] = job.stats().overflow_bytes
        tensors[-1].add_(0)
    job.park()
    with job.iteration():
        said["later"] = job.stats().overflow_bytes
        is_intact = is_intact and are_intact(1)
        tensors.clear()
        torch.cuda.empty_cache()
        said["at_the_end"] = job.stats().overflow_bytes
    said["is_intact"] = is_intact
    said["violations"] = fake.violations()
    return said


def begin(
    coordinator: Callable[..., dict[str, str]], device_file: Path, **more: str
) -> tuple[object, dict[str, str]]:
    """The child, and how to ask its coordinator."""
    settings = coordinator(capacity="256MiB", require="1")
    limits = {"GPUSHARE_MEMORY_LIMIT": f"{LIMIT_MIB}MiB", "GPUSHARE_OVERFLOW": "1"}
    size = {"capacity_bytes": 512 * MIB, "device_file": device_file}
    return start(overflows, late=True, **size, **settings, **limits, **more), settings


def test_a_job_beyond_its_limit_goes_on_and_moves_in_with_a_lease(
    coordinator: Callable[..., dict[str, str]], device_file: Path
) -> None:
    child, settings = begin(coordinator, device_file)
    said = child.hear()
    assert said["overflow"] >= (TENSOR_MIB * NUM_TENSORS - LIMIT_MIB) * MIB
    assert said["used"] <= LIMIT_MIB * MIB
    (row,) = status(settings)["devices"][0]["jobs"]
    assert row["overflow_bytes"] == said["overflow"]
    CoordinatorClient([settings["GPUSHARE_SOCKET"]]).set_job(row["job"], {"memory_limit_bytes": 0})
    time.sleep(3)  # in which a job on a CPU would have asked for room again
    child.say("go on")
    result = child.result()
    assert result["stays"] == said["overflow"], "a kernel that writes it would not wait"
    assert result["later"] == 0
    assert result["at_the_end"] == 0
    assert result["is_intact"] is True
    assert result["violations"] == []


def test_what_still_overflows_is_given_back_with_its_segment(
    coordinator: Callable[..., dict[str, str]], device_file: Path
) -> None:
    child, _ = begin(coordinator, device_file)
    said = child.hear()
    child.say("go on")
    result = child.result()
    assert result["later"] == said["overflow"], "there is no room for it"
    assert result["at_the_end"] == 0
    assert result["is_intact"] is True
    assert result["violations"] == []


def test_without_host_memory_in_place_it_is_out_of_memory(
    coordinator: Callable[..., dict[str, str]], device_file: Path
) -> None:
    child, _ = begin(coordinator, device_file, GPUSHARE_REACHABLE="off")
    assert "out of memory" in str(child.result()["error"])
