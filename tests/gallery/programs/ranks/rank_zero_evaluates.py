"""Ranks that are not in step: rank 0 evaluates by itself, and the other waits for it."""

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
    inner = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))
    model = nn.parallel.DistributedDataParallel(inner)
    optimizer = torch.optim.Adam(model.parameters())
    torch.manual_seed(rank)
    for epoch in range(3):
        for step in range(5):
            optimizer.zero_grad()
            model(torch.randn(32, 64)).square().mean().backward()
            optimizer.step()
        if rank == 0:
            with torch.no_grad():
                total = sum(inner(torch.randn(32, 64)).sum().item() for _ in range(6))
            print(epoch, total.hex(), flush=True)
        dist.barrier()
    del model, optimizer
    dist.barrier()
    leave_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, (folder + "/store",), nprocs=2)
