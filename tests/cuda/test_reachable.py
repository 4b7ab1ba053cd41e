"""What is spilled can be used where its addresses are, slowly, on a device that can do it."""

from __future__ import annotations

import os
import signal
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
    "switch",
    [{"FAKECUDA_HOST_NUMA": "0"}, {"GPUSHARE_REACHABLE": "off"}],
    ids=["device", "setting"],
)
def test_without_it_a_stray_access_is_a_fault(
    switch: dict[str, str], device_file: Path, coordinator: Callable[..., dict[str, str]]
) -> None:
    said = run(device_file, coordinator, **switch)
    assert said["spilled"] > 0
    assert "illegal memory access" in str(said["error"])
    assert said["stays"] == 0
    assert len(said["violations"]) == 1


def waits(parent: Parent, *, by_thread: bool) -> dict[str, object]:
    """A child: its memory is used while its main thread waits in the gate.

    A signal's handler uses it, or else a thread.
    """
    import torch

    import gpushare

    job = gpushare.register(name="waiter")
    with job.iteration():
        tensor = torch.arange(16 << 18, device="cuda", dtype=torch.float32)
    said: dict[str, object] = {}

    def use(*_: object) -> None:
        try:
            said["spilled"] = job.stats().spilled_bytes
            said["read"] = bool((tensor.cpu() == torch.arange(16 << 18)).all())
            tensor.add_(1)
            torch.cuda.synchronize()
            said["still_spilled"] = job.stats().spilled_bytes
        except RuntimeError as error:
            said["error"] = str(error)
        parent.say("used")

    signal.signal(signal.SIGUSR1, use)

    def wait_for_the_test() -> None:
        parent.hear()
        use()

    parent.say("idle")
    parent.hear()
    if by_thread:
        threading.Thread(target=wait_for_the_test, daemon=True).start()
    with job.iteration():
        said["is_right"] = bool((tensor.cpu() == torch.arange(16 << 18) + 1).all())
    said["violations"] = fake.violations()
    return said


def run_waiting(
    device_file: Path, coordinator: Callable[..., dict[str, str]], *, by_thread: bool, **more: str
) -> dict[str, object]:
    """What the waiter finds, whose memory another job has taken the place of."""
    settings = coordinator(require="1", min_quantum="0")
    size = {"capacity_bytes": CAPACITY_BYTES, "device_file": device_file}
    waiter = start(_WAITS[by_thread], late=True, **size, **settings, **more)
    assert waiter.hear() == "idle"
    other = start(fills, late=True, **size, **settings)
    assert other.hear() == "has the lease"
    waiter.say("go on")
    other.say("fill")  # which it can once the other one waits in the gate
    assert other.hear() == "filled"
    if by_thread:
        waiter.say("use")
    else:
        os.kill(waiter.pid, signal.SIGUSR1)
    assert waiter.hear() == "used"
    other.say("end")
    other.result()
    return waiter.result()


def waits_for_a_signal(parent: Parent) -> dict[str, object]:
    return waits(parent, by_thread=False)


def waits_with_a_thread(parent: Parent) -> dict[str, object]:
    return waits(parent, by_thread=True)


_WAITS = {False: waits_for_a_signal, True: waits_with_a_thread}


def fills(parent: Parent) -> None:
    """A child that holds nearly all of the device, and its lease, until it is told to end."""
    import torch

    import gpushare

    job = gpushare.register(name="filler")
    with job.iteration():
        kept = torch.ones(1, device="cuda")
        parent.say("has the lease")
        parent.hear()
        kept = torch.full((90 << 18,), 1.0, device="cuda")
        parent.say("filled")
        parent.hear()
    assert kept.numel() > 0


@pytest.mark.parametrize("reachable", ["auto", "on"])
def test_a_signals_handler_uses_what_is_spilled_while_the_gate_waits(
    reachable: str, device_file: Path, coordinator: Callable[..., dict[str, str]]
) -> None:
    said = run_waiting(device_file, coordinator, by_thread=False, GPUSHARE_REACHABLE=reachable)
    assert "error" not in said
    assert said["spilled"] == said["still_spilled"]
    assert said["spilled"] != 0, "it was there all the time"
    assert (said["read"], said["is_right"]) == (True, True)
    assert said["violations"] == []


def test_a_thread_uses_it_meanwhile_where_it_was_asked_for(
    device_file: Path, coordinator: Callable[..., dict[str, str]]
) -> None:
    said = run_waiting(device_file, coordinator, by_thread=True, GPUSHARE_REACHABLE="on")
    assert "error" not in said
    assert said["spilled"] != 0, "it was there all the time"
    assert (said["read"], said["is_right"]) == (True, True)


def test_memory_shows_nothing_while_the_gate_waits_unless_it_is_asked_for(
    device_file: Path, coordinator: Callable[..., dict[str, str]]
) -> None:
    said = run_waiting(device_file, coordinator, by_thread=True)
    assert said["spilled"] != 0, "it was there all the time"
    assert "illegal memory access" in str(said["error"])
