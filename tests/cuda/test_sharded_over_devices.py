"""FSDP 2 over two devices: three programs of four ranks take turns, by an arbiter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from tests.cuda.programs import lines_in_text
from tests.support import forked
from tests.support.arbiters import ArbiterProcess

RANKS = 4
STEPS = 6
CAPACITY = 256 << 20
"""Of a device. Six ranks want 88 MiB there each."""
SCRIPT = f"""
import json, os, sys
import torch
from tests.cuda import fake
fake.install_ops()
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
is_shared = os.environ.get("GPUSHARE_DISABLE") != "1"
if is_shared:
    import gpushare
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank // 2)
torch.manual_seed(1)
dist.init_process_group("gloo", init_method=sys.argv[1], rank=rank, world_size={RANKS})
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
mesh = DeviceMesh.from_group(dist.group.WORLD, "cuda")
for part in (model[0], model[2], model):
    fully_shard(part, mesh=mesh)
optimizer = torch.optim.Adam(model.parameters())
job = gpushare.register(model, optimizer, name="sharded") if is_shared else None
losses = []
for step in range({STEPS}):
    optimizer.zero_grad()
    loss = model(torch.full((8, 256), 0.1 * step + rank).cuda()).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
said = dict(rank=rank, losses=losses)
if job is not None:
    stats = job.stats()
    moved = stats.spilled_total_bytes + stats.dropped_total_bytes
    said |= dict(managed=stats.is_managed, moved=moved)
os.write(1, (json.dumps(said) + chr(10)).encode())
os._exit(0)
"""

Program = list[forked.ForkedProcess]


@pytest.fixture
def arbiter(tmp_path: Path) -> Iterator[ArbiterProcess]:
    """Of the coordinators of both devices."""
    with ArbiterProcess(tmp_path) as process:
        yield process


@pytest.fixture
def shared(
    device: Callable[..., dict[str, str]], home: dict[str, str], arbiter: ArbiterProcess
) -> dict[str, str]:
    """The environment of ranks: each device has less memory than all its ranks need together."""
    more = {f"GPUSHARE_{name.upper()}": value for name, value in arbiter.settings().items()}
    return device(CAPACITY, num_devices=2) | home | more


@contextmanager
def _program(env: dict[str, str], folder: Path, name: str) -> Iterator[Program]:
    with ExitStack() as stack:
        ranks = []
        for rank in range(RANKS):
            own = {"RANK": str(rank), "GPUSHARE_DEVICE": f"cuda:{rank // 2}"}
            words = ["train.py", f"file://{folder}/{name}"]
            ranks.append(
                stack.enter_context(forked.start(words, env | own, cwd=folder, stdout=PIPE))
            )
        yield ranks


def _said(program: Program) -> list[dict[str, Any]]:
    """What its ranks say at their ends, in order."""
    said = [line for rank in program for line in lines_in_text(rank.communicate()[0])]
    return sorted(said, key=lambda line: line["rank"])


def _losses(ranks: list[dict[str, Any]]) -> list[list[float]]:
    return [rank["losses"] for rank in ranks]


def test_three_programs_train_as_alone(shared: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    with _program(shared | {"GPUSHARE_DISABLE": "1"}, tmp_path, "alone") as program:
        alone = _losses(_said(program))
    assert len({tuple(losses) for losses in alone}) == RANKS, "each has its batches"
    with ExitStack() as stack:
        programs = [
            stack.enter_context(_program(shared, tmp_path, f"store{number}")) for number in range(3)
        ]
        said = [_said(each) for each in programs]
    assert [_losses(ranks) for ranks in said] == [alone] * 3
    assert all(rank["managed"] for ranks in said for rank in ranks)
    assert any(rank["moved"] > 0 for ranks in said for rank in ranks)
