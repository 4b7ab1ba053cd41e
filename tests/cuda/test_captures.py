"""A graph is captured with a lease: it is waited for, and nobody takes it before the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.processes import WAIT_SECONDS, read_status
from tests.cuda import fake
from tests.cuda.child import Parent, start

LONGER_THAN_AN_IDLE_ITERATION_KEEPS_ITS_LEASE = 3.0


def captures(parent: Parent) -> dict[str, Any]:
    """A child: it captures outside of any iteration, and pauses in the middle."""
    import torch

    import gpushare

    job = gpushare.register(name="captures")
    tensor = torch.zeros(1000, device="cuda")
    leases_before = job.stats().leases
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        tensor.add_(1)
        parent.say("capturing")
        parent.hear()
        state = job.stats().lease_state
        tensor.add_(1)
    return {"leases": job.stats().leases - leases_before, "state": state}


def iterates(parent: Parent) -> int:
    """A child: one iteration, once it is told to."""
    import torch

    import gpushare

    job = gpushare.register(name="iterates")
    parent.say("ready")
    parent.hear()
    with job.iteration():
        torch.zeros(1000, device="cuda")
    return job.stats().leases


def test_others_wait_for_the_end_of_a_capture(
    device_file: Path, coordinator: Callable[..., dict[str, str]]
) -> None:
    env: dict[str, Any] = {"device_file": device_file}
    env |= coordinator(min_quantum="0", policy="rr", require="1")
    other = start(iterates, **env)
    assert other.hear() == "ready"
    capturing = start(captures, **env)
    assert capturing.hear() == "capturing"
    other.say("iterate")
    end = time.monotonic() + WAIT_SECONDS
    while _states(env).get("iterates") != "waiting":
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(LONGER_THAN_AN_IDLE_ITERATION_KEEPS_ITS_LEASE)
    assert _states(env) == {"captures": "running", "iterates": "waiting"}
    capturing.say("go on")
    said = capturing.result()
    assert said["leases"] == 1
    assert said["state"].startswith(("kOpen", "kClosing")), "it kept its lease"
    assert other.result() == 1


def _states(env: dict[str, Any]) -> dict[str, str]:
    report = read_status(fake.environment(**env))
    devices = report.get("devices", [])  # none while there is no coordinator
    return {job["name"]: job["state"] for device in devices for job in device["jobs"]}
