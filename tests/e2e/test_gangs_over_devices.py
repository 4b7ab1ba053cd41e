"""Ranks of a program on two devices of one coordinator: rows until an agreed step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import read_status
from tests.e2e.asking import wait_until
from tests.support.job_process import JobProcess
from tests.support.ranks import Ranks, digest_of, ranks_of

Coordinator = Callable[..., dict[str, str]]

NUM_RANKS = 2
STOCK = {"GPUSHARE_DISABLE": "1"}
SETTINGS = {
    "devices": "cpu:0=1GiB,cpu:1=1GiB",
    "require": "1",
    "log_level": "error",
    "linger": "60s",
}


def _training(
    env: dict[str, str], store: Path, *, steps: int = 150
) -> AbstractContextManager[Ranks]:
    """Two ranks of the distributed program."""
    flags = ["--mode", "ddp", "--steps", str(steps), "--init", f"file://{store}"]
    return _program("tests.e2e.ranks_job", flags, env)


def _program(module: str, flags: list[str], env: dict[str, str]) -> AbstractContextManager[Ranks]:
    """A program of two ranks, each on a device of its own."""
    environments = [
        env | {"LOCAL_RANK": str(rank), "GPUSHARE_DEVICE": f"cpu:{rank}"}
        for rank in range(NUM_RANKS)
    ]
    return ranks_of(environments, *flags, module=module)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the program computes on stock torch."""
    with _training(STOCK, tmp_path_factory.mktemp("stock") / "store") as ranks:
        return digest_of(ranks)


@contextmanager
def _two_programs(env: dict[str, str], folder: Path) -> Iterator[tuple[Ranks, Ranks]]:
    with _training(env, folder / "a") as first, _training(env, folder / "b") as second:
        yield first, second


def _jobs(env: dict[str, str]) -> list[dict[str, Any]]:
    """All jobs of all devices; none before the coordinator is there."""
    return [job for each in read_status(env).get("devices", []) for job in each["jobs"]]


def _texts(env: dict[str, str]) -> list[str]:
    return [job["explain"] for job in _jobs(env) if job["state"] == "waiting"]


# The rows of both gangs follow each other on both devices, and people are told which one is open.
def test_two_programs_take_turns_on_two_devices(
    coordinator: Coordinator, stock: str, tmp_path: Path
) -> None:
    env = coordinator(**SETTINGS)
    with _two_programs(env, tmp_path) as (first, second):
        wait_until(lambda: any("for the row of gang ranks-" in text for text in _texts(env)))
        assert [digest_of(first), digest_of(second)] == [stock, stock]
    status = read_status(env)
    assert all(device["switches"] >= 2 for device in status["devices"])
    rows = [each["reason"] for each in status["decisions"] if each["what"] == "row"]
    assert rows
    assert all("is open until step " in row for row in rows)


def test_a_killed_rank_holds_no_other_gang_up(
    coordinator: Coordinator, stock: str, tmp_path: Path
) -> None:
    env = coordinator(**SETTINGS)
    with _training(env, tmp_path / "broken", steps=100_000) as broken:
        wait_until(lambda: [job["state"] for job in _jobs(env)].count("running") == NUM_RANKS)
        with _training(env, tmp_path / "whole") as whole:
            wait_until(lambda: len(_jobs(env)) == 2 * NUM_RANKS)
            os.kill(broken[0].pid, signal.SIGKILL)
            assert digest_of(whole) == stock


def test_a_killed_coordinator_leaves_both_gangs_whole(
    coordinator: Coordinator, stock: str, tmp_path: Path
) -> None:
    env = coordinator(**SETTINGS)
    with _two_programs(env, tmp_path) as (first, second):
        wait_until(lambda: any(job["state"] == "running" for job in _jobs(env)))
        wait_until(lambda: len(_jobs(env)) == 2 * NUM_RANKS)
        before = read_status(env)["coordinator"]["pid"]
        os.kill(before, signal.SIGKILL)
        assert [digest_of(first), digest_of(second)] == [stock, stock]
    assert read_status(env)["coordinator"]["pid"] != before


# The single job has its turns between two rows, on the device that it is on.
ALONE = """
import json, torch, gpushare
job = gpushare.register(name="single")
for step in range(200):
    with job.iteration():
        torch.ones(1 << 18).mul_(2)
print(json.dumps({"done": True, "iterations": job.stats().iterations}))
"""


def test_a_single_job_has_turns_beside_a_gang(coordinator: Coordinator, tmp_path: Path) -> None:
    env = coordinator(**SETTINGS)
    with _training(env, tmp_path / "gang", steps=100_000):
        wait_until(lambda: [job["state"] for job in _jobs(env)].count("running") == NUM_RANKS)
        alone = env | {"GPUSHARE_DEVICE": "cpu:1"}
        with JobProcess(env=alone, command=[sys.executable, "-c", ALONE]) as single:
            assert single.result()["iterations"] == 200


def _held(env: dict[str, str]) -> dict[float, float]:
    """Seconds that the ranks on the first device have had leases, by the weight of their gang."""
    return {job["weight"]: job["served_seconds"] for job in read_status(env)["devices"][0]["jobs"]}


def test_gangs_share_their_devices_by_weight(coordinator: Coordinator, tmp_path: Path) -> None:
    env = coordinator(**SETTINGS, min_quantum="50ms")
    with (
        _training(env, tmp_path / "heavy", steps=100_000),
        _training(env, tmp_path / "light", steps=100_000),
    ):
        wait_until(lambda: len([job for job in _jobs(env) if job["iterations"] > 0]) == 4)
        on_second = read_status(env)["devices"][1]["jobs"][0]  # all of its gang weigh as much then
        set_weight = [sys.executable, "-m", "gpushare", "set", str(on_second["job"])]
        subprocess.run([*set_weight, "--weight", "3"], env=os.environ | env, check=True)
        wait_until(lambda: min(_held(env).values()) > 0.1)
        before = _held(env)
        wait_until(lambda: sum(_held(env).values()) - sum(before.values()) > 4)
        after = _held(env)
        assert 2 < (after[3] - before[3]) / (after[1] - before[1]) < 4


# Steps count, whatever ranks do between them: evaluate alone, accumulate, run out of input, gather
# parameters, or step at different times.
def test_what_ranks_do_beside_steps(coordinator: Coordinator, tmp_path: Path) -> None:
    def start(env: dict[str, str], name: str) -> AbstractContextManager[Ranks]:
        return _program("tests.e2e.gang_habits", [f"file://{tmp_path / name}"], env)

    with start(STOCK, "stock") as ranks:
        stock = digest_of(ranks)
    env = coordinator(**SETTINGS)
    with start(env, "first") as first, start(env, "second") as second:
        assert [digest_of(first), digest_of(second)] == [stock, stock]
    assert all(device["switches"] >= 2 for device in read_status(env)["devices"])
