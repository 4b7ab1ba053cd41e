"""FSDP 1 and 2 under ``gpushare run``: two ranks on one device, as without gpushare."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from benchmarks.processes import gpushare_command
from tests.cuda.programs import lines_in_text, lines_of
from tests.support import forked

STEPS = 4
SCRIPT = f"""
import json, os, sys
import torch
from tests.cuda import fake
fake.install_ops()
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(0)
torch.manual_seed(1)
dist.init_process_group("gloo")
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
if sys.argv[1] == "fsdp2":
    # Else FSDP of torch 2.9 makes a group of its own, of NCCL.
    mesh = DeviceMesh.from_group(dist.group.WORLD, "cuda")
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
else:
    model = FullyShardedDataParallel(model, device_id=0)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step in range({STEPS}):
    optimizer.zero_grad()
    loss = model(torch.full((8, 256), 0.1 * step + rank).cuda()).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
said = dict(rank=rank, losses=losses)
if "gpushare" in sys.modules:
    from gpushare import _native
    from gpushare.stats import job_stats
    stats = job_stats()
    said["job"] = dict(managed=stats.is_managed, steps=stats.optimizer_steps,
                       device=_native.device())
os.write(1, (json.dumps(said) + chr(10)).encode())
os._exit(0)
"""


@pytest.mark.parametrize("kind", ["fsdp1", "fsdp2"])
def test_ranks_train_as_alone(
    kind: str, device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    env = device(256 << 20) | home
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = gpushare_command("run", "--", *torchrun, "train.py", kind)
    shared = lines_of(command, env, tmp_path)
    alone = _ranks_alone(kind, env, tmp_path)
    assert _losses(shared) == _losses(alone)
    assert len({tuple(losses) for losses in _losses(alone).values()}) == 2, "each has its batches"
    jobs = [rank["job"] for rank in shared]
    assert [job["managed"] for job in jobs] == [True, True]
    assert [job["steps"] for job in jobs] == [STEPS, STEPS]
    assert len({job["device"] for job in jobs}) == 1


def _ranks_alone(kind: str, env: dict[str, str], folder: Path) -> list[dict[str, Any]]:
    """What the two ranks say on stock torch, started as torchrun starts them."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    with ExitStack() as stack:
        ranks = []
        for rank in ("0", "1"):
            own = env | meeting | {"RANK": rank, "LOCAL_RANK": rank}
            started = forked.start(["train.py", kind], own, cwd=folder, stdout=PIPE)
            ranks.append(stack.enter_context(started))
        return [line for rank in ranks for line in lines_in_text(rank.communicate()[0])]


def _losses(ranks: list[dict[str, Any]]) -> dict[int, list[float]]:
    return {rank["rank"]: rank["losses"] for rank in ranks}
