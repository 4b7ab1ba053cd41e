"""Ranks of a distributed program on one device: one lease, one job; nobody waits for ever."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import gpushare_command, job_environment, read_status
from tests.support import forked

Coordinator = Callable[..., dict[str, str]]

PROGRAM = Path(__file__).resolve().parents[2] / "benchmarks" / "ranks_program.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
RANKS = 2
WAIT_SECONDS = 120


class Program:
    """A program of two ranks, which find each other by a file."""

    def __init__(self, env: dict[str, str], *words: str) -> None:
        """Starts `python WORD...` for each."""
        self.ranks = [
            forked.start(
                words,
                job_environment(env | {"RANK": str(rank), "WORLD_SIZE": str(RANKS)}),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for rank in range(RANKS)
        ]

    def result(self) -> dict[str, Any]:
        """What rank 0 says, when both have ended."""
        ended = [rank.communicate(timeout=WAIT_SECONDS) for rank in self.ranks]
        for rank, (_, errors) in zip(self.ranks, ended, strict=True):
            assert rank.returncode == 0, errors[-4000:]
        said: dict[str, Any] = json.loads(ended[0][0])
        return said


def _trains(env: dict[str, str], mode: str, store: Path, *, steps: int = 150) -> Program:
    flags = ["--mode", mode, "--steps", str(steps), "--init", f"file://{store}"]
    return Program(env, "-m", "tests.e2e.ranks_job", *flags)


@pytest.mark.parametrize("mode", ["ddp", "fsdp", "tensor"])
def test_two_programs_take_turns_and_end_with_stocks_bits(
    mode: str, coordinator: Coordinator, tmp_path: Path
) -> None:
    stock = _trains({"GPUSHARE_DISABLE": "1"}, mode, tmp_path / "stock").result()
    env = coordinator(require="1", log_level="error", linger="60")
    programs = [_trains(env, mode, tmp_path / f"program{number}") for number in range(2)]
    for program in programs:
        assert program.result()["digest"] == stock["digest"]
    assert read_status(env)["devices"][0]["switches"] >= 2


def test_ranks_started_by_torchrun_are_one_gang(coordinator: Coordinator) -> None:
    env = coordinator(require="1", report="0", linger="60")
    command = [*TORCHRUN, str(PROGRAM), "--steps", "20"]
    done = subprocess.run(
        [*gpushare_command("run", "--"), *command],
        env=job_environment(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert _num_granted_along(env) >= 1


LATE = """
import json, os, sys
import torch
import torch.distributed as dist
import gpushare
job = gpushare.register()
with job.iteration():
    pass
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=sys.argv[1], rank=rank, world_size=2)
for step in range(5):
    with job.iteration():
        dist.all_reduce(torch.ones(4))
print(json.dumps({"number": job.number, "iterations": job.stats().iterations}))
"""


def test_a_job_that_becomes_a_rank_later_joins_its_gang(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(require="1", log_level="error", linger="60")
    said = Program(env, "-c", LATE, f"file://{tmp_path / 'store'}").result()
    assert said["number"] in (1, 2)
    assert said["iterations"] == 6
    assert _num_granted_along(env) >= 1


def _num_granted_along(env: dict[str, str]) -> int:
    grants = [each for each in read_status(env)["decisions"] if each["what"] == "grant"]
    return len([each for each in grants if "of the gang ranks-" in each["reason"]])


def test_a_killed_rank_holds_nobody_up(coordinator: Coordinator, tmp_path: Path) -> None:
    env = coordinator(require="1", log_level="error", linger="60")
    stock = _trains({"GPUSHARE_DISABLE": "1"}, "ddp", tmp_path / "stock").result()
    broken = _trains(env, "ddp", tmp_path / "broken", steps=100_000)
    while len(_running(env)) < RANKS:
        time.sleep(0.05)
    whole = _trains(env, "ddp", tmp_path / "whole")
    os.kill(broken.ranks[0].pid, signal.SIGKILL)
    assert whole.result()["digest"] == stock["digest"]
    # The other rank fails, or waits for it for ever: as on stock.
    broken.ranks[1].kill()
    for rank in broken.ranks:
        rank.communicate()


def _running(env: dict[str, str]) -> list[int]:
    devices = read_status(env).get("devices", [])  # none before its first job
    jobs = [job for device in devices for job in device["jobs"]]
    return [job["job"] for job in jobs if job["state"] == "running"]
