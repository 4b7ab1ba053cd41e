"""What a decision of the coordinator costs, with 10 to 100,000 jobs in line.

A decision is what a close of the holder's lease brings about: the message is handled, and the next
job is granted its lease. All jobs fit on the device, so no memory is planned; or half of 800 do,
and others are asked for the room of the next.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from benchmarks import native
from benchmarks.report import Report

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = (10, 100, 1000, 10_000, 100_000)
POLICIES = ("fair", "srtf")


NUM_SHORT = 800
"""Jobs of which half fit at a time."""


def _measure(program: Path, jobs: int, policy: str, part: float = 1) -> dict[str, Any]:
    command = [program, str(jobs), policy, str(part)]
    said = subprocess.run(command, capture_output=True, check=True, text=True)
    measured: dict[str, Any] = json.loads(said.stdout)
    return measured


def run(*, quick: bool) -> Report:
    """5 processes for each number of jobs and policy, in turn."""
    report = Report(name="decision")
    program = native.build("decision_bench")
    numbers = NUMBERS[:3] if quick else NUMBERS
    measured: dict[tuple[int, str], list[dict[str, Any]]] = {}
    short = []
    for _ in range(1 if quick else 5):
        for jobs in numbers:
            for policy in POLICIES:
                measured.setdefault((jobs, policy), []).append(_measure(program, jobs, policy))
        short.append(_measure(program, NUM_SHORT, POLICIES[0], 0.5))
    us = {}
    for (jobs, policy), runs in measured.items():
        us[jobs, policy] = report.add_samples(
            f"{policy}_{jobs}_us", [each["close_us"] for each in runs]
        )
        report.add_samples(f"{policy}_{jobs}_p99_us", [each["close_p99_us"] for each in runs])
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
        "memory_mb": memory,
    }
    if quick:
        report.notes.append("--quick: no more than 1,000 jobs")
    return report
