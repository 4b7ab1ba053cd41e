"""The pools of torch's allocator to which new blocks go while a lease is closed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.processes import WAIT_SECONDS
from tests.cuda.child import Parent, start

SHARED_POOL = (0x6770757368617265 + 1, 0)
"""The second pool of csrc/binding/torch/torch_router.cpp."""
A_FEW_TRIES_SECONDS = 0.1
"""A close that was refused is tried again every 5 ms."""


def has_a_route_of_its_own(_parent: Parent) -> dict[str, Any]:
    """A child: torch refuses the second of two routes, so a close fails half way."""
    import torch

    import gpushare
    from gpushare import _native

    native = _native.load()
    job = gpushare.register(name="routed")
    with job.iteration():
        torch.zeros(1000, device="cuda")
    torch._C._cuda_beginAllocateToPool(0, SHARED_POOL)
    native.close_lease("exception")
    time.sleep(A_FEW_TRIES_SECONDS)
    refused = job.stats().lease_state
    torch._C._cuda_endAllocateToPool(0, SHARED_POOL)  # raises if somebody has ended it
    torch._C._cuda_releasePool(0, SHARED_POOL)
    end = time.monotonic() + WAIT_SECONDS
    while job.stats().lease_state.startswith("kClosing") and time.monotonic() < end:
        time.sleep(0.01)
    closed = job.stats().lease_state
    with job.iteration():
        value = torch.ones(10, device="cuda").sum().item()
    return {"refused": refused, "closed": closed, "value": value}


def test_a_close_that_torch_refuses_leaves_the_routes_of_others(
    device_file: Path, coordinator: Callable[..., dict[str, str]]
) -> None:
    env: dict[str, Any] = {"device_file": device_file}
    said = start(has_a_route_of_its_own, **(env | coordinator(require="1"))).result()
    assert said["refused"].startswith("kClosing")
    assert said["closed"].startswith("kIdle"), "it is tried again until it succeeds"
    assert said["value"] == 10
