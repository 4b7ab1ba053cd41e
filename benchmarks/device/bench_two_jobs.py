"""Compares two jobs together with the same two jobs one after the other.

Each job needs 0.95 of the device's capacity, so all of a job's memory moves at each switch. Both
jobs do the same number of steps, chosen so that a job computes for three quarters of a minute. That
is some quanta, which are long where much memory moves.

`over_serial` compares with registered jobs that have the device to themselves, so the ratio is the
cost of sharing. `over_serial_stock` compares with jobs on stock torch. All steps of a job are
alike, so both comparisons measure steps for a quarter of the time only.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from benchmarks.device.machine import MIB, device, size
from benchmarks.device.training import Trainer
from benchmarks.processes import private_coordinator
from benchmarks.report import Report

CAPACITY = 8 << 30
FAKE_CAPACITY = 128 * MIB
SECONDS = 45.0
"""The time that a job computes for."""
ALONE_PART = 0.25
FIRST_STEPS = 5
FAKE_STEPS = 4


def _together(
    env: dict[str, str], flags: list[str], capacity: int, steps: int
) -> tuple[float, list[dict[str, Any]]]:
    """Returns the seconds from the first start to the last end, and both jobs' statistics."""
    with ExitStack() as stack:
        env = env | stack.enter_context(private_coordinator(capacity=str(capacity), require="1"))
        jobs: list[Trainer] = []
        for _ in range(2):
            jobs.append(Trainer(*flags, "--shared", env=env))
            stack.enter_context(jobs[-1])
        for job in jobs:
            job.wait_ready()
        for job in jobs:
            job.order(steps=steps)
        said = [job.say() for job in jobs]
        stats = [job.stats() for job in jobs]
    return max(each["ended"] for each in said) - min(each["begun"] for each in said), stats


def _step_seconds(env: dict[str, str], flags: list[str], seconds: float) -> float:
    """Returns the seconds of one step of a job that has the device to itself."""
    with Trainer(*flags, env=env) as job:
        job.wait_ready()
        first = job.train(FIRST_STEPS) / FIRST_STEPS
        steps = size(_steps_of(seconds, first), FAKE_STEPS)
        return job.train(steps) / steps


def _steps_of(seconds: float, step_seconds: float) -> int:
    return max(FIRST_STEPS, round(seconds / step_seconds))


def run(*, quick: bool) -> Report:
    """Measures all three, in two and a half minutes."""
    report = Report(name="two_jobs")
    capacity = size(CAPACITY, FAKE_CAPACITY)
    # Activations, cuBLAS's workspaces and temporary memory of the optimizer need the rest.
    state = int(capacity * 0.95) - size(512 * MIB, 32 * MIB)
    flags = ["--model", "filler", "--state-bytes", str(state), "--warm-up", "2"]
    seconds = SECONDS / 3 if quick else SECONDS
    with device() as env:
        with private_coordinator(capacity=str(capacity), require="1") as more:
            alone = _step_seconds(env | more, [*flags, "--shared"], ALONE_PART * seconds)
        steps = size(_steps_of(seconds, alone), FAKE_STEPS)
        together, stats = _together(env, flags, capacity, steps)
        stock = _step_seconds(env | {"GPUSHARE_DISABLE": "1"}, flags, ALONE_PART * seconds)
    serial, serial_stock = 2 * steps * alone, 2 * steps * stock
    seen = {"together": together, "serial": serial, "serial_stock": serial_stock}
    for name, each in seen.items():
        report.add_samples(f"{name}_seconds", [each])
    leases = sum(each["leases"] for each in stats)
    report.figures = {
        "over_serial": together / serial,
        "over_serial_stock": together / serial_stock,
        # The ratio follows from how often the device changed hands, and from the cost of each time.
        "leases": float(leases),
        "lease_seconds": sum(each["held_seconds"] for each in stats) / leases,
        "lost_a_lease_seconds": (together - serial) / leases,
        "restore_a_lease_seconds": sum(each["moving_seconds"] for each in stats) / leases,
    }
    report.notes.append(f"capacity {capacity >> 20} MiB, state {state >> 20} MiB a job")
    report.notes.append(f"{steps} steps a job")
    return report
