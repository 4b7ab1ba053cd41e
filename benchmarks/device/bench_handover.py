"""Times the hand-over of the lease, from one job's boundary until the waiter's gate returns.

The two jobs fit together, so no memory moves. An iteration is a kernel and a millisecond of the
host's time. The boundary waits for the device.
"""

from __future__ import annotations

import json
import sys
import time

from benchmarks.bench_handover import BUSY_SECONDS, handovers
from benchmarks.device import machine
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report, quantile


def _take_turns(seconds: float) -> list[tuple[float, float]]:
    """Runs iterations in a job's process.

    Returns:
        For each iteration, when the gate returned and when the boundary was, by CLOCK_MONOTONIC.
    """
    import torch

    import gpushare

    machine.start()
    numbers = torch.ones(1024).to("cuda")
    job = gpushare.register(torch.nn.Linear(1, 1).to("cuda"))
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    seen = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with job.iteration():
            entered = time.monotonic()
            numbers.add_(1)
            while time.monotonic() < entered + BUSY_SECONDS:
                pass
            left = time.monotonic()
        seen.append((entered, left))
    job.close()
    return seen


def run(*, quick: bool) -> Report:
    """Measures four seconds of taking turns."""
    report = Report(name="handover")
    seconds = "1" if quick or machine.is_fake() else "4"
    with (
        machine.device() as env,
        private_coordinator(policy="rr", min_quantum="0") as more,
        JobProcess(seconds, env=env | more, module=__name__) as first,
        JobProcess(seconds, env=env | more, module=__name__) as second,
    ):
        for job in (first, second):
            job.wait_ready()
        for job in (first, second):
            job.go()
        seen = handovers([job.result() for job in (first, second)])
    report.figures = {
        "median_us": report.add_samples("handover_us", seen),
        "p99_us": quantile(seen, 0.99),
        "handovers": float(len(seen)),
    }
    return report


if __name__ == "__main__":
    print(json.dumps({"done": True, "turns": _take_turns(float(sys.argv[1]))}))
