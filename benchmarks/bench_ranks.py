"""Distributed programs of two ranks on one device, under `gpushare run`: alone, and two at once.

DistributedDataParallel, FSDP2 and tensor parallelism, each started by torchrun with gloo. Alone:
the time of its steps over stock's, the two in turn. Two at once: the time from the first one's
first step to the last one's last, over the sum of their times alone under gpushare.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from benchmarks.processes import JobProcess, gpushare_command, private_coordinator
from benchmarks.ranks_program import MODES
from benchmarks.report import Report

PROGRAM = str(Path(__file__).with_name("ranks_program.py"))
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
NAMES = {"ddp": "ddp_over_stock", "fsdp": "fsdp_over_stock", "tensor": "tensor_parallel_over_stock"}
STEPS = {"ddp": 600, "fsdp": 200, "tensor": 400}
"""As many take some seconds."""


def _seconds(env: dict[str, str], mode: str, steps: int, *, programs: int) -> float:
    """Of so many at once. Without `env` on stock torch."""
    command = [*(gpushare_command("run", "--") if env else []), *TORCHRUN, PROGRAM]
    flags = ["--mode", mode, "--steps", str(steps), "--wait"]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                JobProcess(*flags, env=env | {"GPUSHARE_REQUIRE": "1"}, command=command)
            )
            for _ in range(programs)
        ]
        return seconds_together(processes)


def seconds_together(processes: list[JobProcess]) -> float:
    """Lets programs go once all are ready: from the first step of any to the last."""
    for process in processes:
        process.wait_ready()
    for process in processes:
        process.go()
    said = [process.result() for process in processes]
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
            stock = _seconds({}, mode, steps, programs=1)
            with private_coordinator() as env:
                alone = _seconds(env, mode, steps, programs=1)
                together = _seconds(env, mode, steps, programs=2)
            alone_over_stock.append(alone / stock)
            together_over_serial.append(together / (2 * alone))
        report.figures[NAMES[mode]] = report.add_samples(NAMES[mode], alone_over_stock)
        overs.append(report.add_samples(f"two_{mode}_over_serial", together_over_serial))
    report.figures["two_jobs_over_serial"] = max(overs)
    report.notes.append("two at once: the worst of three medians")
    return report
