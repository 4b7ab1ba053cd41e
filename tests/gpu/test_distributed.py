"""DDP and FSDP 2 on one host: a process of its own, and two ranks on one device."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.processes import ROOT, job_environment, private_coordinator
from tests.gpu.conftest import PROGRAM_SECONDS

if TYPE_CHECKING:
    from tests.gpu.conftest import Run

TRAIN = """
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
torch.cuda.set_device(0)
backend = "gloo" if machine.is_fake() else "nccl"
dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 16)
).to("cuda")
if {kind!r} == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
else:
    for part in (model[0], model[2], model):
        fully_shard(part)
optimizer = torch.optim.Adam(model.parameters())
job = gpushare.register(model, optimizer)
losses = []
for number in range(5):
    x = torch.randn(64, 512, generator=torch.Generator().manual_seed(number)).to("cuda")
    optimizer.zero_grad(set_to_none=True)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if job.is_managed:
        spill()
stats = _native.load().job_stats() if job.is_managed else {{}}
say(losses=losses, stats=stats)
"""


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_one_rank_trains_as_on_stock_while_memory_moves(kind: str, run: Run) -> None:
    ours = run(TRAIN.format(kind=kind))
    stock = run(TRAIN.format(kind=kind), stock=True)
    assert ours["losses"] == stock["losses"]
    assert ours["stats"]["optimizer_steps"] == 5
    assert ours["stats"]["spilled_total_bytes"] > 0


def test_two_ranks_on_one_device_train_as_on_stock(device: dict[str, str]) -> None:
    with private_coordinator(require="1", device="cuda:0") as gpushare_env:
        ours = _two_ranks(device | gpushare_env)
    stock = _two_ranks(device | {"GPUSHARE_DISABLE": "1"})
    assert [rank["losses"] for rank in ours] == [rank["losses"] for rank in stock]
    assert [rank["is_managed"] for rank in ours] == [True, True]


def _two_ranks(env: dict[str, str]) -> list[dict[str, Any]]:
    """What each says. NCCL takes no two ranks on one device: this is gloo.

    Without an address torchrun asks for the one of the host's name, which may have none.
    """
    torchrun = ["torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
    torchrun.append("--nproc-per-node=2")
    done = subprocess.run(
        [sys.executable, "-m", *torchrun, "-m", "tests.gpu.ranks_job"],
        env=job_environment(env),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS // 2,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return sorted(said, key=lambda rank: rank["rank"])
