"""A rank of FSDP on the fake device: says its losses, and where it is a job of gpushare, that.

    python -m tests.cuda.sharded_job fsdp1|fsdp2 DEVICE STEPS [register]

torchrun's variables say which rank it is. With `register` it registers itself. It ends at once,
without what torch does at the end of a process.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

if "register" in sys.argv:
    import gpushare
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

from tests.cuda import fake


def sharded(kind: str, device: int) -> nn.Module:
    """The model, in the parts of all ranks."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
    if kind == "fsdp1":
        return FullyShardedDataParallel(model, device_id=device)
    # Without a mesh, FSDP of torch 2.9 would make an NCCL group of its own.
    assert dist.group.WORLD is not None
    mesh = DeviceMesh.from_group(dist.group.WORLD, "cuda")
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
    return model


def as_job() -> dict[str, Any]:
    """What gpushare says of this process; it knows one that never asked for it, too."""
    from gpushare import _native
    from gpushare.stats import job_stats

    stats = job_stats()
    return {
        "managed": stats.is_managed,
        "steps": stats.optimizer_steps,
        "device": _native.device(),
        "moved": stats.spilled_total_bytes + stats.dropped_total_bytes,
    }


def main() -> None:
    """Trains, and says how it went."""
    kind, device, steps, *register = sys.argv[1:]
    fake.install_ops()
    torch.cuda.set_device(int(device))
    dist.init_process_group("gloo")
    model = sharded(kind, int(device))
    optimizer = torch.optim.Adam(model.parameters())
    if register:
        gpushare.register(model, optimizer)
    losses = []
    for step in range(int(steps)):
        optimizer.zero_grad()
        x = torch.full((8, 256), 0.1 * step + dist.get_rank()).cuda()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    said = {"rank": dist.get_rank(), "losses": losses}
    if "gpushare" in sys.modules:
        said["job"] = as_job()
    os.write(1, f"{json.dumps(said)}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main()
