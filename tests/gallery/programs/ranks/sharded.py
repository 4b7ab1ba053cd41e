"""FSDP2: each rank has a part of each parameter."""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from tests.support.gloo import leave_group


def sharded(model):
    mesh = init_device_mesh("cpu", (2,))
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
    return model


def train(rank, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = sharded(nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 4)))
    optimizer = torch.optim.Adam(model.parameters())
    torch.manual_seed(rank)
    for step in range(12):
        optimizer.zero_grad()
        loss = model(torch.randn(32, 64)).square().mean()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(loss.item().hex(), flush=True)
    del model, optimizer
    dist.barrier()
    leave_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, (folder + "/store",), nprocs=2)
    sys.stdout.flush()
