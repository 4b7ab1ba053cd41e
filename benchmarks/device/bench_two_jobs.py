"""Two jobs of 0.95 of the device's capacity each, together, over one after the other.

Both do the same steps; all of a job's memory moves at each switch. One after the other: registered
too, with the device to itself, so that the ratio is what sharing costs. `over_serial_stock`: over
stock torch.
"""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.device.machine import MIB, device, size
from benchmarks.device.training import Trainer
from benchmarks.processes import private_coordinator
from benchmarks.report import Report

CAPACITY = 8 << 30
FAKE_CAPACITY = 128 * MIB


def _together(env: dict[str, str], flags: list[str], capacity: int, steps: int) -> float:
    """Seconds from both's start to the last one's end."""
    with ExitStack() as stack:
        env = env | stack.enter_context(private_coordinator(capacity=str(capacity), require="1"))
        jobs = [stack.enter_context(Trainer(*flags, "--shared", env=env)) for _ in range(2)]
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.order(steps=steps)
        said = [job.say() for job in jobs]
    return max(each["ended"] for each in said) - min(each["begun"] for each in said)


def _alone(env: dict[str, str], flags: list[str], steps: int) -> float:
    """Seconds of one of them with the device to itself."""
    with Trainer(*flags, env=env) as job:
        return job.wait_ready().train(steps)


def run(*, quick: bool) -> Report:
    """Two minutes: long enough for some quanta, which are long where much moves."""
    report = Report(name="two_jobs")
    capacity = size(CAPACITY, FAKE_CAPACITY)
    # The rest is activations, cuBLAS's workspaces and what the optimizer takes for a moment.
    state = int(capacity * 0.95) - size(512 * MIB, 32 * MIB)
    flags = ["--model", "filler", "--state-bytes", str(state), "--warm-up", "2"]
    steps = size(100, 4) if quick else size(300, 4)
    with device() as env:
        together = _together(env, flags, capacity, steps)
        with private_coordinator(capacity=str(capacity), require="1") as more:
            serial = 2 * _alone(env | more, [*flags, "--shared"], steps)
        stock = 2 * _alone(env | {"GPUSHARE_DISABLE": "1"}, flags, steps)
    seen = {"together": together, "serial": serial, "serial_stock": stock}
    for name, seconds in seen.items():
        report.add_samples(f"{name}_seconds", [seconds])
    report.figures = {"over_serial": together / serial, "over_serial_stock": together / stock}
    report.notes.append(f"capacity {capacity >> 20} MiB, state {state >> 20} MiB a job")
    return report
