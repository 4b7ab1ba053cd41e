"""The simulator itself: events a second on one core, and 100,000 jobs on 10,000 devices.

An event is a message to a coordinator, a deadline that it was called for, a message of its own, or
a lease that it granted or asked back (docs/simulator.md). Seconds are of CPU time: a simulation is
one thread that waits for nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from gpushare.simulate import generate, runs
from gpushare.simulate.trace import to_csv

_KIB_A_MB = 1024
LARGE = {"jobs": 100_000, "devices": 10_000}
SMALL = {"jobs": 1_000, "devices": 100}


def _forget_peak() -> None:
    """The kernel counts the peak of this process' memory (VmHWM) from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def _resident_kib(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {key}")


def _simulate(
    cluster: str, policy: str, machine: dict[str, str], *, jobs: int, devices: int, load: float
) -> dict[str, float]:
    """Seconds, peak memory beyond what the process had, and events of one simulation."""
    module = runs.native()
    trace = to_csv(generate.generate(cluster, jobs=jobs, seed=1, devices=devices, load=load))
    fields = " ".join(f"{name}={value}" for name, value in machine.items())
    device = f"policy={policy} devices={devices} {fields}"
    _forget_peak()
    before = _resident_kib("VmRSS")
    start = time.process_time()
    found: dict[str, Any] = json.loads(module.simulate_trace(device, trace))
    seconds = time.process_time() - start
    return {
        "seconds": seconds,
        "memory_mb": (_resident_kib("VmHWM") - before) / _KIB_A_MB,
        "steps": found["num_steps"],
        "events": found["num_steps"] + found["num_decisions"],
    }


def _simulate_apart(sizes: dict[str, int]) -> dict[str, float]:
    """The large trace in a process of its own, whose peak is that of nothing else."""
    code = (
        "import json, sys\n"
        "from benchmarks.bench_simulator import _simulate\n"
        "machine = {'capacity': '16GiB', 'min_quantum': '60s', 'max_wait': '600s'}\n"
        "sizes = json.loads(sys.argv[1])\n"
        "print(json.dumps(_simulate('alibaba', 'fair', machine, load=2.0, **sizes)))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, json.dumps(sizes)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def run(*, quick: bool) -> Report:
    """Five runs of 100 jobs that share a device by turns, one of the large trace."""
    report = Report(name="simulator")
    rates, step_rates = [], []
    for _ in range(1 if quick else 5):
        one = _simulate("salus", "fair", {"capacity": "16GiB"}, jobs=100, devices=1, load=1.2)
        rates.append(one["events"] / one["seconds"])
        step_rates.append(one["steps"] / one["seconds"])
    report.figures["events_per_second"] = report.add_samples("events_per_second", rates)
    report.figures["steps_per_second"] = report.add_samples("steps_per_second", step_rates)
    large = _simulate_apart(SMALL if quick else LARGE)
    report.figures["trace_100k_seconds"] = large["seconds"]
    report.figures["trace_100k_memory_mb"] = large["memory_mb"]
    report.figures["trace_100k_events"] = large["events"]
    report.notes = ["steps: of the events, messages to coordinators and deadlines"]
    if quick:
        report.notes.append("trace_100k_: of 1,000 jobs on 100 devices")
    return report
