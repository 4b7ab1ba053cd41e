"""Two jobs of 0.95 of the device's capacity each, together, over one after the other.

Both do the same steps; all of a job's memory moves at each switch. One after the other: registered
too, with the device to itself, so that the ratio is what sharing costs. `over_serial_stock`: over
stock torch.
"""

from __future__ import annotations

import statistics
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
    """About a minute: three rounds of each in turn."""
    report = Report(name="two_jobs")
    capacity = size(CAPACITY, FAKE_CAPACITY)
    # A part of what a job holds is its gradients of the moment and cuBLAS's workspace.
    state = int(capacity * 0.95) - size(512 * MIB, 32 * MIB)
    flags = ["--model", "filler", "--state-bytes", str(state), "--warm-up", "2"]
    steps = size(300, 4)
    rows: dict[str, list[float]] = {"together": [], "serial": [], "serial_stock": []}
    with device() as env:
        for _ in range(1 if quick else size(3, 1)):
            rows["together"].append(_together(env, flags, capacity, steps))
            with private_coordinator(capacity=str(capacity), require="1") as more:
                alone = _alone(env | more, [*flags, "--shared"], steps)
            rows["serial"].append(2 * alone)
            stock = env | {"GPUSHARE_DISABLE": "1"}
            rows["serial_stock"].append(2 * _alone(stock, flags, steps))
    for name, values in rows.items():
        report.add_samples(f"{name}_seconds", values)
    for name, row in (("over_serial", "serial"), ("over_serial_stock", "serial_stock")):
        ratios = [a / b for a, b in zip(rows["together"], rows[row], strict=True)]
        report.figures[name] = statistics.median(ratios)
    report.notes.append(f"capacity {capacity >> 20} MiB, state {state >> 20} MiB a job")
    return report
