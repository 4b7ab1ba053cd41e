"""Ranks of a distributed program on one device: one lease, one job; nobody waits for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.bench_ranks import PROGRAM, TORCHRUN
from benchmarks.processes import gpushare_command, job_environment, read_status
from tests.e2e.asking import status
from tests.support.job_process import JobProcess
from tests.support.ranks import WAIT_SECONDS, Ranks, digest_of, ranks_of

Coordinator = Callable[..., dict[str, str]]

NUM_RANKS = 2
STOCK = {"GPUSHARE_DISABLE": "1"}
LINGERS = {"require": "1", "log_level": "error", "linger": "60s"}
"""So that the coordinator can be asked when its jobs have ended."""


def _ranks(env: dict[str, str], *words: str, **how: Any) -> AbstractContextManager[Ranks]:
    """The processes of a program."""
    return ranks_of([env] * NUM_RANKS, *words, **how)


def _training(
    env: dict[str, str], mode: str, store: Path, *, steps: int = 150
) -> AbstractContextManager[Ranks]:
    """That of the benchmark; its ranks find each other by a file."""
    flags = ["--mode", mode, "--steps", str(steps), "--init", f"file://{store}"]
    return _ranks(env, *flags, module="tests.e2e.ranks_job")


def _stock_digest(mode: str, store: Path) -> str:
    with _training(STOCK, mode, store) as ranks:
        return digest_of(ranks)


def _num_granted_along(env: dict[str, str]) -> int:
    grants = [each for each in read_status(env)["decisions"] if each["what"] == "grant"]
    return len([each for each in grants if each["reason"].startswith("along with")])


def _wait_until_running(env: dict[str, str], number: int) -> None:
    """So many jobs have leases. pytest's own time limit ends it."""
    while True:
        devices = read_status(env).get("devices", [])  # none before its first job
        jobs = [job for device in devices for job in device["jobs"]]
        if [job["state"] for job in jobs].count("running") >= number:
            return
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("mode", "more"),
    [
        ("ddp", {}),
        ("fsdp", {}),
        ("tensor", {}),
        ("ddp", {"policy": "pack"}),
        ("tensor", {"policy": "priority", "num_lanes": "2"}),
    ],
)
def test_two_programs_take_turns_and_end_with_stocks_bits(
    mode: str, more: dict[str, str], coordinator: Coordinator, tmp_path: Path
) -> None:
    stock = _stock_digest(mode, tmp_path / "stock")
    env = coordinator(**LINGERS, **more)
    with (
        _training(env, mode, tmp_path / "a") as first,
        _training(env, mode, tmp_path / "b") as second,
    ):
        assert [digest_of(first), digest_of(second)] == [stock, stock]
    assert _num_granted_along(env) >= 2
    if not more:
        assert read_status(env)["devices"][0]["switches"] >= 2


def test_ranks_started_by_torchrun_are_one_gang(coordinator: Coordinator) -> None:
    env = coordinator(report="0", **LINGERS)
    done = subprocess.run(
        [*gpushare_command("run", "--"), *TORCHRUN, PROGRAM, "--steps", "20"],
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
from tests.support.gloo import leave_group
job = gpushare.register()
with job.iteration():
    pass
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=sys.argv[1], rank=rank, world_size=2)
for step in range(5):
    with job.iteration():
        dist.all_reduce(torch.ones(4))
print(json.dumps({"done": True, "number": job.number, "iterations": job.stats().iterations}))
leave_group()
"""


def test_a_job_that_becomes_a_rank_later_joins_its_gang(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(**LINGERS)
    command = [sys.executable, "-c", LATE, f"file://{tmp_path / 'store'}"]
    with _ranks(env, command=command) as ranks:
        said = [rank.result() for rank in ranks]
    assert sorted(each["number"] for each in said) == [1, 2]
    assert [each["iterations"] for each in said] == [6, 6]
    assert _num_granted_along(env) >= 1


# Two processes that torch does not know to be together, and a third that takes turns with them.
PAIR = """
import json, os, sys
import torch
import gpushare
store = torch.distributed.FileStore(sys.argv[1], 2)
rank = os.environ["RANK"]
other = str(1 - int(rank))
job = gpushare.register(gang="pair")
for step in range(60):
    with job.iteration():
        store.set(f"{rank}/{step}", "here")
        store.get(f"{other}/{step}")
        torch.ones(1 << 18).mul_(2)
print(json.dumps({"done": True, "iterations": job.stats().iterations}))
"""
ALONE = """
import json, torch, gpushare
job = gpushare.register()
for step in range(400):
    with job.iteration():
        torch.ones(1 << 20).mul_(2)
print(json.dumps({"done": True}))
"""


def test_processes_that_name_a_gang_wait_for_each_other_in_one_lease(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(**LINGERS)
    with (
        JobProcess(env=env, command=[sys.executable, "-c", ALONE]) as alone,
        _ranks(env, command=[sys.executable, "-c", PAIR, str(tmp_path / "store")]) as ranks,
    ):
        assert [rank.result()["iterations"] for rank in ranks] == [60, 60]
        alone.result()
    assert _num_granted_along(env) >= 1


def test_ranks_on_several_hosts_get_no_turns_and_end_where_those_are_required(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(**LINGERS) | {"LOCAL_WORLD_SIZE": "1"}
    with _training(env, "ddp", tmp_path / "store") as ranks:
        ended = [rank.process.wait(WAIT_SECONDS) for rank in ranks]
        said = [rank.errors() for rank in ranks]
    assert ended == [3, 3], said
    for number, errors in enumerate(said):
        assert f"gpushare: this is rank {number} of 2 of a program on several devices" in errors


def test_a_killed_rank_holds_nobody_up(coordinator: Coordinator, tmp_path: Path) -> None:
    env = coordinator(**LINGERS)
    stock = _stock_digest("ddp", tmp_path / "stock")
    with _training(env, "ddp", tmp_path / "broken", steps=100_000) as broken:
        _wait_until_running(env, NUM_RANKS)
        with _training(env, "ddp", tmp_path / "whole") as whole:
            os.kill(broken[0].pid, signal.SIGKILL)
            # The other rank of the broken one fails, or waits for ever: as on stock.
            assert digest_of(whole) == stock


def test_a_killed_coordinator_leaves_both_programs_whole(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(**LINGERS)
    stock = _stock_digest("ddp", tmp_path / "stock")
    with (
        _training(env, "ddp", tmp_path / "a") as first,
        _training(env, "ddp", tmp_path / "b") as second,
    ):
        _wait_until_running(env, NUM_RANKS)
        before = status(env)["coordinator"]["pid"]
        os.kill(before, signal.SIGKILL)
        assert [digest_of(first), digest_of(second)] == [stock, stock]
    assert status(env)["coordinator"]["pid"] != before
