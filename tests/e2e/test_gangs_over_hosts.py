"""Programs whose ranks are on two hosts: two coordinators, and an arbiter that gives rows."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import read_status
from tests.e2e.asking import wait_until
from tests.support.arbiters import ArbiterProcess
from tests.support.job_process import JobProcess
from tests.support.ranks import Ranks, digest_of, ranks_of

Coordinator = Callable[..., dict[str, str]]
Hosts = list[dict[str, str]]

STOCK = {"GPUSHARE_DISABLE": "1"}
SETTINGS = {"capacity": "1GiB", "require": "1", "log_level": "error", "linger": "60s"}


@pytest.fixture
def arbiter(tmp_path: Path) -> Iterator[ArbiterProcess]:
    """An arbiter of its own for each test."""
    with ArbiterProcess(tmp_path) as process:
        yield process


@pytest.fixture
def hosts(coordinator: Coordinator, arbiter: ArbiterProcess) -> Hosts:
    """The environments of jobs on two hosts."""
    return [coordinator(**SETTINGS, **arbiter.settings()) for _ in range(2)]


ON_EACH_HOST = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
"""One rank, as `torchrun` starts it there."""


def _training(hosts: Hosts, store: Path, *, steps: int = 150) -> AbstractContextManager[Ranks]:
    """A program with one rank on each host, as two torchruns start it."""
    flags = ["--mode", "ddp", "--steps", str(steps), "--init", f"file://{store}"]
    return ranks_of([host | ON_EACH_HOST for host in hosts], *flags, module="tests.e2e.ranks_job")


@contextmanager
def _two_programs(hosts: Hosts, folder: Path) -> Iterator[tuple[Ranks, Ranks]]:
    with _training(hosts, folder / "a") as first, _training(hosts, folder / "b") as second:
        yield first, second


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the program computes on stock torch."""
    with _training([STOCK, STOCK], tmp_path_factory.mktemp("stock") / "store") as ranks:
        return digest_of(ranks)


def _jobs(host: dict[str, str]) -> list[dict[str, Any]]:
    """All jobs of a host; none before its coordinator is there."""
    return [job for each in read_status(host).get("devices", []) for job in each["jobs"]]


def _are_all_here(hosts: Hosts, num: int) -> bool:
    """Whether so many jobs of each host have begun to train."""
    return all(
        sum(job["iterations"] > 0 or job["state"] == "waiting" for job in _jobs(host)) == num
        for host in hosts
    )


def test_two_programs_take_turns_on_two_hosts(hosts: Hosts, stock: str, tmp_path: Path) -> None:
    def explained() -> list[str]:
        return [job["explain"] or "" for host in hosts for job in _jobs(host)]

    with _two_programs(hosts, tmp_path) as (first, second):
        wait_until(lambda: any("for the row of gang ranks-" in text for text in explained()))
        assert [digest_of(first), digest_of(second)] == [stock, stock]
    for host in hosts:
        status = read_status(host)
        assert status["devices"][0]["switches"] >= 2
        rows = [each["reason"] for each in status["decisions"] if each["what"] == "row"]
        assert rows
        assert all("is open until step " in row for row in rows)


def test_a_killed_arbiter_ends_no_program(
    hosts: Hosts, arbiter: ArbiterProcess, stock: str, tmp_path: Path
) -> None:
    with _two_programs(hosts, tmp_path) as (first, second):
        wait_until(lambda: _are_all_here(hosts, 2))
        arbiter.kill()
        texts: list[str] = []

        def all_wait() -> bool:
            texts[:] = [job["explain"] or "" for host in hosts for job in _jobs(host)]
            return all("the arbiter at tcp:" in text for text in texts)

        # Each gang ends its row, and says what it waits for. A single job goes on meanwhile.
        wait_until(all_wait)
        assert all("does not answer" in text for text in texts)
        warnings = [each["text"] for each in read_status(hosts[0])["warnings"]]
        assert any("the arbiter at tcp:" in text for text in warnings)
        with JobProcess(env=hosts[0], command=[sys.executable, "-c", ALONE]) as single:
            assert single.result()["iterations"] == 50
        arbiter.start()
        assert [digest_of(first), digest_of(second)] == [stock, stock]


ALONE = """
import json, torch, gpushare
job = gpushare.register(name="single")
for step in range(50):
    with job.iteration():
        torch.ones(1 << 18).mul_(2)
print(json.dumps({"done": True, "iterations": job.stats().iterations}))
"""


def test_a_killed_coordinator_ends_no_program(hosts: Hosts, stock: str, tmp_path: Path) -> None:
    with _two_programs(hosts, tmp_path) as (first, second):
        wait_until(lambda: _are_all_here(hosts, 2))
        before = read_status(hosts[1])["coordinator"]["pid"]
        os.kill(before, signal.SIGKILL)
        assert [digest_of(first), digest_of(second)] == [stock, stock]
    assert read_status(hosts[1])["coordinator"]["pid"] != before


def test_a_killed_rank_holds_no_other_program_up(hosts: Hosts, stock: str, tmp_path: Path) -> None:
    with _training(hosts, tmp_path / "broken", steps=100_000) as broken:
        wait_until(lambda: _are_all_here(hosts, 1))
        with _training(hosts, tmp_path / "whole") as whole:
            wait_until(lambda: _are_all_here(hosts, 2))
            os.kill(broken[1].pid, signal.SIGKILL)
            assert digest_of(whole) == stock


# The name may have two numbers, and the arbiter listens at one of them.
def test_a_host_finds_its_arbiter_by_name(
    coordinator: Coordinator, arbiter: ArbiterProcess
) -> None:
    by_name = arbiter.address.replace("127.0.0.1", "localhost")
    host = coordinator(**SETTINGS, **(arbiter.settings() | {"arbiter": by_name}))
    with JobProcess(env=host, command=[sys.executable, "-c", ALONE]) as single:
        assert single.result()["iterations"] == 50
    wait_until(lambda: "joins from 127.0.0.1" in arbiter.log())
    warnings = [each["text"] for each in read_status(host)["warnings"]]
    assert not any("the arbiter" in text for text in warnings)


# A host without the token gets no rows. It says so, and its single jobs run.
def test_a_host_with_another_token_is_refused(
    coordinator: Coordinator, arbiter: ArbiterProcess, tmp_path: Path
) -> None:
    token = tmp_path / "another"
    token.touch(mode=0o600)
    token.write_text("x" * 32)
    host = coordinator(**SETTINGS, arbiter=arbiter.address, arbiter_token_file=str(token))
    with JobProcess(env=host, command=[sys.executable, "-c", ALONE]) as single:
        assert single.result()["iterations"] == 50
    wait_until(lambda: "it has another token; its connection is closed" in arbiter.log())
    warnings = [each["text"] for each in read_status(host)["warnings"]]
    assert any("it refuses this host: it has another token" in text for text in warnings)


# Ranks of one program at the gate of two coordinators. The test holds one rank of each back, so
# that each program has one host, and then lets them go.
CROSSED = """
import json, os, sys, torch, torch.distributed as dist, gpushare
from torch.nn.parallel import DistributedDataParallel
from tests.support.gloo import leave_group
torch.manual_seed(0)
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=sys.argv[1], rank=rank, world_size=2)
model = DistributedDataParallel(torch.nn.Linear(8, 8))
job = gpushare.register(name=f"{sys.argv[2]}{rank}", gang=sys.argv[2])
dist.barrier()
print(json.dumps({"ready": True}), flush=True)
sys.stdin.readline()
for step in range(40):
    with job.iteration():
        model(torch.ones(4, 8)).sum().backward()
del model
print(json.dumps({"done": True}), flush=True)
leave_group()
"""


@contextmanager
def _crossed(hosts: Hosts, store: Path, gang: str) -> Iterator[Ranks]:
    command = [sys.executable, "-c", CROSSED, f"file://{store}", gang]
    with ranks_of([host | ON_EACH_HOST for host in hosts], command=command) as ranks:
        for each in ranks:
            each.wait_ready()
        yield ranks


def _pause(host: dict[str, str], name: str, *, is_paused: bool) -> None:
    from gpushare._coordinator.client import CoordinatorClient

    client = CoordinatorClient([host["GPUSHARE_SOCKET"]])
    number = next(job["job"] for job in _jobs(host) if job["name"] == name)
    client.set_job(number, {"is_paused": is_paused})


def _cross(hosts: Hosts, red: Ranks, blue: Ranks) -> None:
    """Lets red's rank 0 and blue's rank 1 begin, and then the other two."""
    _pause(hosts[1], "red1", is_paused=True)
    _pause(hosts[0], "blue0", is_paused=True)
    for each in [*red, *blue]:
        each.go()
    wait_until(lambda: all(job["state"] != "idle" for host in hosts for job in _jobs(host)))
    _pause(hosts[1], "red1", is_paused=False)
    _pause(hosts[0], "blue0", is_paused=False)


# What the arbiter is for: each host alone gives a turn to another program, and both stand still.
def test_without_an_arbiter_two_programs_starve(coordinator: Coordinator, tmp_path: Path) -> None:
    hosts = [coordinator(**SETTINGS) for _ in range(2)]
    with (
        _crossed(hosts, tmp_path / "red", "red") as red,
        _crossed(hosts, tmp_path / "blue", "blue") as blue,
    ):
        _cross(hosts, red, blue)
        wait_until(
            lambda: (
                [job["name"] for host in hosts for job in _jobs(host) if job["state"] == "running"]
                == ["red0", "blue1"]
            )
        )
        before = [job["iterations"] for host in hosts for job in _jobs(host)]
        # No condition can be waited for, since nothing is to happen. A program that goes on makes
        # all of its steps in less time.
        time.sleep(2)
        assert [job["iterations"] for host in hosts for job in _jobs(host)] == before


def test_with_an_arbiter_the_same_programs_end(hosts: Hosts, tmp_path: Path) -> None:
    with (
        _crossed(hosts, tmp_path / "red", "red") as red,
        _crossed(hosts, tmp_path / "blue", "blue") as blue,
    ):
        _cross(hosts, red, blue)
        for each in [*red, *blue]:
            each.result()
