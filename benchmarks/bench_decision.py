"""What a decision of the coordinator costs, with 10 to 100,000 jobs in line.

A decision is what a close of the holder's lease brings about: the message is handled, and the next
job is granted its lease. All jobs fit on the device, so no memory is planned. Two cases have 800
jobs that do not fit: half of them do, and others are asked for the room of the next; and all of
them start at the same time on a device for 80, in the simulator.
"""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

from benchmarks import native
from benchmarks.report import Report
from gpushare.simulate import runs

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = (10, 100, 1000, 10_000, 100_000)
POLICIES = ("fair", "srtf")
NUM_SHORT = 800
"""Jobs that do not fit at the same time."""
SHORT_PART = 0.5
"""Of them fit."""
START_CAPACITY_GIB = 80
"""For jobs of 1 GiB each."""
START_ITERATIONS = {"fair": 100, "pack": 30}
"""Of each job, by policy."""


def _measure(program: Path, jobs: int, policy: str, part: float = 1) -> dict[str, Any]:
    command = [program, str(jobs), policy, str(part)]
    said = subprocess.run(command, capture_output=True, check=True, text=True)
    measured: dict[str, Any] = json.loads(said.stdout)
    return measured


def _start(policy: str) -> float:
    """Microseconds a message, the simulated jobs' own part included."""
    row = f"0,{START_ITERATIONS[policy]},0.1,0.85,1"
    trace = "\n".join(
        ["submit_s,iterations,iteration_s,persistent_gib,peak_gib", *[row] * NUM_SHORT]
    )
    machine = {
        "capacity": f"{START_CAPACITY_GIB}GiB",
        "bandwidth": "25GiB",
        "host_budget": f"{2 * NUM_SHORT}GiB",
        "interference": "1",
    }
    begin = time.perf_counter()
    report = runs.run(trace, [policy], machine)[0]
    seconds = time.perf_counter() - begin
    if report["num_finished"] != NUM_SHORT:
        raise RuntimeError(f"of {NUM_SHORT} jobs {report['num_finished']} have finished")
    return 1e6 * seconds / report["num_steps"]


def run(*, quick: bool) -> Report:
    """5 processes for each number of jobs and policy, in turn."""
    report = Report(name="decision")
    program = native.build("decision_bench")
    numbers = NUMBERS[:3] if quick else NUMBERS
    measured: dict[tuple[int, str], list[dict[str, Any]]] = {}
    short = []
    starts: dict[str, list[float]] = {}
    for _ in range(1 if quick else 5):
        for jobs in numbers:
            for policy in POLICIES:
                measured.setdefault((jobs, policy), []).append(_measure(program, jobs, policy))
        short.append(_measure(program, NUM_SHORT, POLICIES[0], SHORT_PART))
        for policy in START_ITERATIONS:
            starts.setdefault(policy, []).append(_start(policy))
    us = {}
    for (jobs, policy), found in measured.items():
        us[jobs, policy] = report.add_samples(
            f"{policy}_{jobs}_us", [each["close_us"] for each in found]
        )
        report.add_samples(f"{policy}_{jobs}_p99_us", [each["close_p99_us"] for each in found])
    short_us = report.add_samples("short_800_us", [each["close_us"] for each in short])
    report.add_samples("short_800_p99_us", [each["close_p99_us"] for each in short])
    report.add_samples("short_800_released_us", [each["released_us"] for each in short])
    memory = report.add_samples(
        "memory_1000_mb", [each["memory_mb"] for each in measured[1000, "fair"]]
    )
    report.figures = {
        "us_at_1000": us[1000, "fair"],
        "us_at_1000_srtf": us[1000, "srtf"],
        "us_at_100000_over_us_at_1000": None if quick else us[100_000, "fair"] / us[1000, "fair"],
        "us_at_800_short": short_us,
        "us_at_start_of_800": report.add_samples("start_800_us", starts["fair"]),
        "us_at_start_of_800_pack": report.add_samples("start_800_pack_us", starts["pack"]),
        "memory_mb": memory,
    }
    if quick:
        report.notes.append("--quick: no more than 1,000 jobs")
    return report
