"""Distributed programs of two ranks on one device, under `gpushare run`: alone, and two at once.

DistributedDataParallel, FSDP2 and tensor parallelism, each started by torchrun with gloo. Alone:
the time of its steps over stock's, the two in turn. Two at once: the time from the first one's
first step to the last one's last, over the sum of their times alone under gpushare.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT, gpushare_command, job_environment, private_coordinator
from benchmarks.ranks_program import MODES
from benchmarks.report import Report

PROGRAM = Path(__file__).with_name("ranks_program.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
NAMES = {"ddp": "ddp_over_stock", "fsdp": "fsdp_over_stock", "tensor": "tensor_parallel_over_stock"}
STEPS = {"ddp": 600, "fsdp": 200, "tensor": 400}
"""As many take some seconds."""
WAIT_SECONDS = 300.0


def _start(env: dict[str, str], mode: str, steps: int) -> subprocess.Popen[str]:
    prefix = gpushare_command("run", "--") if env else []
    flags = ["--mode", mode, "--steps", str(steps), "--wait"]
    return subprocess.Popen(
        [*prefix, *TORCHRUN, str(PROGRAM), *flags],
        env=job_environment(env | {"GPUSHARE_REQUIRE": "1"}),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _wait_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    if "ready" not in process.stdout.readline():
        process.wait()
        raise RuntimeError(f"ended with {process.returncode}: {process.communicate()[1][-4000:]}")


def _end(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=WAIT_SECONDS)
    if process.returncode != 0:
        raise RuntimeError(f"ended with {process.returncode}: {errors[-4000:]}")
    said: dict[str, Any] = json.loads(out)
    return said


def _together(env: dict[str, str], mode: str, steps: int, *, programs: int) -> float:
    """From the first step of any to the last, in seconds, once all are ready."""
    processes = [_start(env, mode, steps) for _ in range(programs)]
    for process in processes:
        _wait_ready(process)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [_end(process) for process in processes]
    return float(max(each["until"] for each in said) - min(each["since"] for each in said))


def run(*, quick: bool) -> Report:
    """3 rounds of each kind."""
    report = Report(name="ranks")
    overs: list[float] = []
    for mode in MODES:
        steps = STEPS[mode] // (8 if quick else 1)
        alone_over_stock = []
        together_over_serial = []
        for _ in range(1 if quick else 3):
            stock = _together({}, mode, steps, programs=1)
            with private_coordinator() as env:
                alone = _together(env, mode, steps, programs=1)
                together = _together(env, mode, steps, programs=2)
            alone_over_stock.append(alone / stock)
            together_over_serial.append(together / (2 * alone))
        report.figures[NAMES[mode]] = report.add_samples(NAMES[mode], alone_over_stock)
        overs.append(report.add_samples(f"two_{mode}_over_serial", together_over_serial))
    report.figures["two_jobs_over_serial"] = max(overs)
    report.notes.append("two at once: the worst of three medians")
    return report
