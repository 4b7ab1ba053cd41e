"""Two stages of one model, a rank each, which send activations and gradients by hand."""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from tests.support.gloo import leave_group


def train(rank, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(rank)
    stage = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128))
    optimizer = torch.optim.Adam(stage.parameters())
    for step in range(12):
        optimizer.zero_grad()
        if rank == 0:
            out = stage(torch.randn(16, 128))
            dist.send(out.detach(), 1)
            gradient = torch.empty_like(out)
            dist.recv(gradient, 1)
            out.backward(gradient)
        else:
            x = torch.empty(16, 128)
            dist.recv(x, 0)
            x.requires_grad_()
            loss = stage(x).square().mean()
            loss.backward()
            dist.send(x.grad, 0)
            print(loss.item().hex(), flush=True)
        optimizer.step()
    dist.barrier()
    leave_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, (folder + "/store",), nprocs=2)
