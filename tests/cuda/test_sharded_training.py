"""FSDP 1 and 2: ranks on one device, and on two, train as without gpushare."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from benchmarks.processes import gpushare_command
from tests.cuda.programs import lines_in_text, lines_of
from tests.support import forked
from tests.support.arbiters import ArbiterProcess
from tests.support.ports import free_ports

MODULE = "tests.cuda.sharded_job"
CAPACITY = 256 << 20
"""Of a device. A rank wants 88 MiB, so two of them fit, and six do not."""
Ranks = list[dict[str, Any]]


@contextmanager
def _program(
    kind: str, devices: list[int], steps: int, env: dict[str, str], *words: str
) -> Iterator[list[forked.ForkedProcess]]:
    """A program with a rank on each of these devices, started as torchrun starts them."""
    (port,) = free_ports(1)
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    meeting |= {"WORLD_SIZE": str(len(devices))}
    with ExitStack() as stack:
        ranks = []
        for rank, device in enumerate(devices):
            own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "GPUSHARE_DEVICE": f"cuda:{device}"}
            command = ["-m", MODULE, kind, str(device), str(steps), *words]
            started = forked.start(command, env | meeting | own, stdout=PIPE)
            ranks.append(stack.enter_context(started))
        yield ranks


def _said(program: list[forked.ForkedProcess]) -> Ranks:
    """What its ranks say at their ends, in order."""
    said = [line for rank in program for line in lines_in_text(rank.communicate()[0])]
    return sorted(said, key=lambda line: int(line["rank"]))


def _losses_alone(
    kind: str, devices: list[int], steps: int, env: dict[str, str]
) -> list[list[float]]:
    """What the ranks compute on stock torch."""
    with _program(kind, devices, steps, env | {"GPUSHARE_DISABLE": "1"}) as program:
        losses = [rank["losses"] for rank in _said(program)]
    assert len({tuple(each) for each in losses}) == len(devices), "each has its batches"
    return losses


@pytest.mark.parametrize("kind", ["fsdp1", "fsdp2"])
def test_ranks_train_as_alone(
    kind: str, device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    env = device(CAPACITY) | home
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = gpushare_command("run", "--", *torchrun, "-m", MODULE, kind, "0", "4")
    shared = sorted(lines_of(command, env, tmp_path), key=lambda line: int(line["rank"]))
    assert [rank["losses"] for rank in shared] == _losses_alone(kind, [0, 0], 4, env)
    jobs = [rank["job"] for rank in shared]
    assert [job["managed"] for job in jobs] == [True, True]
    assert [job["steps"] for job in jobs] == [4, 4]
    assert len({job["device"] for job in jobs}) == 1


@pytest.mark.parametrize("has_arbiter", [True, False])
def test_three_programs_over_two_devices_train_as_alone(
    has_arbiter: bool, device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    """Without an arbiter the devices have one coordinator, which gives them their turns."""
    devices, steps = [0, 0, 1, 1], 12
    with ArbiterProcess(tmp_path) as arbiter, ExitStack() as stack:
        settings = arbiter.settings() if has_arbiter else {"linger": "60s", "log": "debug"}
        more = {f"GPUSHARE_{name.upper()}": value for name, value in settings.items()}
        env = device(CAPACITY, num_devices=2) | home | more
        alone = _losses_alone("fsdp2", devices, steps, env)
        programs = [
            stack.enter_context(_program("fsdp2", devices, steps, env, "register"))
            for _ in range(3)
        ]
        said = [_said(each) for each in programs]
        log = arbiter.log() if has_arbiter else _coordinators_log(env)
        assert log.count("its row is over") >= 2
    assert [[rank["losses"] for rank in ranks] for ranks in said] == [alone] * 3
    jobs = [rank["job"] for ranks in said for rank in ranks]
    assert all(job["managed"] for job in jobs)
    assert len({job["device"] for job in jobs}) == 2
    assert any(job["moved"] > 0 for job in jobs)


def _coordinators_log(env: dict[str, str]) -> str:
    command = gpushare_command("coordinator", "log")
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
