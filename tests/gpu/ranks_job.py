"""Run by torchrun: a rank of DDP over gloo, which shares its device with the other ranks."""

from __future__ import annotations

import json
import os

import torch
import torch.distributed as dist

import gpushare
from benchmarks.device import machine

# Few: a rank that waits for another one keeps its lease until it has idled for seconds.
STEPS = 2


def main() -> None:
    """Says its losses."""
    machine.start()
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.cuda.set_device(0)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    rank = dist.get_rank()
    model = torch.nn.Linear(512, 64).to("cuda")
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    optimizer = torch.optim.Adam(model.parameters())
    job = gpushare.register(model, optimizer)
    losses = []
    for number in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        loss = model(torch.full((16, 512), 0.1 * number + rank).to("cuda")).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    said = json.dumps({"rank": rank, "losses": losses, "is_managed": job.is_managed})
    # In one write, for both write to the same pipe; and before other threads of torch's end.
    os.write(1, f"{said}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main()
