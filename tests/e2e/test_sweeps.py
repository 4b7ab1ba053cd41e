"""Memory made between iterations moves like the rest: a sweep beside another runs as alone."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.processes import gpushare_command, job_environment

Coordinator = Callable[..., dict[str, str]]

SCRIPT = str(Path(__file__).with_name("sweep_script.py"))
WAIT_SECONDS = 200


def _start(env: dict[str, str], *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command, sys.executable, SCRIPT],
        env=job_environment(env | {"OMP_NUM_THREADS": "1"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _start_managed(env: dict[str, str]) -> subprocess.Popen[str]:
    settings = {"GPUSHARE_REPORT": "1", "GPUSHARE_REQUIRE": "1"}
    return _start(env | settings, *gpushare_command("run", "--"))


def _end(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0, err
    return out, err


def _peak_mib(report: str) -> float:
    found = re.search(r"peak ([0-9.]+) (MiB|GiB)", report)
    assert found is not None, report
    return float(found[1]) * (1024 if found[2] == "GiB" else 1)


def test_two_sweeps_that_fit_alone_both_end_with_stocks_bits(coordinator: Coordinator) -> None:
    stock, _ = _end(_start({}))
    alone, report = _end(_start_managed(coordinator()))
    assert alone == stock
    # The one that computes needs more than is left beside what the other holds in its gaps.
    capacity = f"{round(1.3 * _peak_mib(report))}MiB"
    env = coordinator(capacity=capacity)
    sweeps = [_start_managed(env) for _ in range(2)]
    for process in sweeps:
        out, err = _end(process)
        assert out == stock, err
