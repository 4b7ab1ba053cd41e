"""What is spilled can be used where its addresses are, slowly, on a device that can do it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cuda import fake
from tests.cuda.child import Parent, start
from tests.support.job_process import JobProcess

MIB = 1 << 20
# Less than the two jobs need at once.
CAPACITY_BYTES = 100 * MIB


def strays(parent: Parent) -> dict[str, object]:
    """A child: a thread of it uses its memory while that is spilled."""
    import torch

    import gpushare

    job = gpushare.register(name="keeper")
    with job.iteration():
        tensor = torch.arange(16 << 18, device="cuda", dtype=torch.float32)
        scratch = torch.full((4 << 18,), 3.0, device="cuda")
    said: dict[str, object] = {}

    def stray() -> None:
        try:
            said["read"] = bool((tensor.cpu() == torch.arange(16 << 18)).all())
            tensor.add_(scratch[0])
            torch.cuda.synchronize()
        except RuntimeError as error:
            said["error"] = str(error)

    parent.say("idle")
    parent.hear()
    said["spilled"] = job.stats().spilled_bytes
    thread = threading.Thread(target=stray)
    thread.start()
    thread.join()
    said["still_spilled"] = job.stats().spilled_bytes
    with job.iteration():
        said["stays"] = job.stats().spilled_bytes
        said["is_right"] = bool((tensor.cpu() == torch.arange(16 << 18) + 3).all())
    said["violations"] = fake.violations()
    return said


def run(
    device_file: Path, coordinator: Callable[..., dict[str, str]], **more: str
) -> dict[str, object]:
    """The stray's findings, after another job has taken the device."""
    settings = coordinator(require="1", min_quantum="0")
    size = {"capacity_bytes": CAPACITY_BYTES, "device_file": device_file}
    keeper = start(strays, GPUSHARE_IDLE_SPILL="0.1s", late=True, **size, **settings, **more)
    assert keeper.hear() == "idle"
    env = fake.environment(**size) | settings
    with JobProcess("--steps", "2", "--poison", env=env, module="tests.cuda.gap_job") as poison:
        result = poison.wait_ready().go().result()
    assert (result["error"], result["num_wrong"]) == ("", 0)
    keeper.say("go on")
    return keeper.result()


def test_a_thread_reads_and_writes_what_is_spilled(
    device_file: Path, coordinator: Callable[..., dict[str, str]]
) -> None:
    said = run(device_file, coordinator)
    assert "error" not in said
    assert said["spilled"] > 0, "it was there all the time"
    assert said["still_spilled"] == said["spilled"]
    assert said["read"] is True
    assert said["stays"] == 0
    assert said["is_right"] is True, "what was written has come along"
    assert said["violations"] == []


@pytest.mark.parametrize(
    "switch", [{"FAKECUDA_HOST_NUMA": "0"}, {"GPUSHARE_REACHABLE": "0"}], ids=["device", "setting"]
)
def test_without_it_a_stray_access_is_a_fault(
    switch: dict[str, str], device_file: Path, coordinator: Callable[..., dict[str, str]]
) -> None:
    said = run(device_file, coordinator, **switch)
    assert said["spilled"] > 0
    assert "illegal memory access" in str(said["error"])
    assert said["stays"] == 0
    assert len(said["violations"]) == 1
