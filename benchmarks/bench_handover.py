"""Hand-over latency: from one job's boundary until the blocked waiter's gate returns.

Two Python processes with nothing to move, through gpushared, quantum as short as it gets. Beside
it, in turn and in the same run, a chain of raw wake-ups of three processes that does the same, with
as much work between, and decides nothing (cpp/wakeup_chain.cpp).
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from typing import Any

from benchmarks import native
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report, quantile

BUSY_SECONDS = 0.001


def _take_turns(seconds: float) -> list[tuple[float, float]]:
    """In a job's process: (gate returned, boundary), CLOCK_MONOTONIC, an iteration each."""
    import torch

    import gpushare

    job = gpushare.register(torch.nn.Linear(1, 1))
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    seen = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with job.iteration():
            entered = time.monotonic()
            while time.monotonic() < entered + BUSY_SECONDS:
                pass
            left = time.monotonic()
        seen.append((entered, left))
    job.close()
    return seen


def handovers(runs: list[dict[str, Any]]) -> list[float]:
    """Microseconds from a job's last boundary of a lease until the other's gate returned."""
    turns = sorted((begin, end, who) for who, run in enumerate(runs) for begin, end in run["turns"])
    return [
        (after[0] - before[1]) * 1e6
        for before, after in itertools.pairwise(turns)
        if before[2] != after[2]
    ]


def _chain(program: str, turns: int) -> list[float]:
    said = subprocess.run([program, str(turns)], capture_output=True, check=True, text=True)
    return [float(line) for line in said.stdout.splitlines()]


def run(*, quick: bool) -> Report:
    """5 rounds of 2 s of raw wake-ups and 4 s of taking turns."""
    report = Report(name="handover")
    program = native.build("wakeup_chain")
    module = "benchmarks.bench_handover"
    raw: list[float] = []
    ours: list[float] = []
    for _ in range(1 if quick else 5):
        raw += _chain(program, 200 if quick else 1000)
        with (
            private_coordinator(policy="rr", min_quantum="0") as env,
            JobProcess("1" if quick else "4", env=env, module=module) as first,
            JobProcess("1" if quick else "4", env=env, module=module) as second,
        ):
            for job in (first, second):
                job.wait_ready()
            for job in (first, second):
                job.go()
            ours += handovers([job.result() for job in (first, second)])
        raw += _chain(program, 200 if quick else 1000)
    chain = report.add_samples("wakeup_chain_us", raw)
    median = report.add_samples("handover_us", ours)
    report.figures = {
        "median_over_chain": median / chain,
        "p99_over_chain": quantile(ours, 0.99) / chain,
        "chain_p99_over_median": quantile(raw, 0.99) / chain,
        "handovers": float(len(ours)),
    }
    return report


if __name__ == "__main__":
    print(json.dumps({"done": True, "turns": _take_turns(float(sys.argv[1]))}))
