"""DistributedDataParallel with two ranks that mp.spawn starts."""

import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from tests.support.gloo import leave_group


def train(rank, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 4))
    )
    optimizer = torch.optim.Adam(model.parameters())
    torch.manual_seed(rank)
    for step in range(12):
        optimizer.zero_grad()
        loss = model(torch.randn(32, 64)).square().mean()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(loss.item().hex(), flush=True)
    if rank == 0:
        torch.save(model.module.state_dict(), "weights.pt")
    del model, optimizer
    dist.barrier()
    leave_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, (folder + "/store",), nprocs=2)
    sys.stdout.flush()
