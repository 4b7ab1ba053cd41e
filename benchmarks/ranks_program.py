"""An ordinary distributed program: ranks that train one model together, without a word of gpushare.

Started by torchrun, or anything that sets RANK and WORLD_SIZE. Rank 0 speaks as a `JobProcess`
(processes.py): at the end it says when its training began and ended (the clock's seconds since the
machine was started), and a digest of what was computed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from tests.support.gloo import leave_group

WARM_UP_STEPS = 3
BATCH = 32


def make_model(width: int) -> nn.Module:
    """Returns an MLP of three layers with a width x width matrix in the middle."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 8)
    )


def data_parallel(model: nn.Module) -> nn.Module:
    """DistributedDataParallel: gradients are averaged in the backward."""
    return nn.parallel.DistributedDataParallel(model)


def sharded(model: nn.Module) -> nn.Module:
    """FSDP2: parameters are gathered before each use."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model.children():
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def tensor_parallel(model: nn.Module) -> nn.Module:
    """Each rank has a part of each matrix: all wait for each other in forward and backward."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


MODES: dict[str, Callable[[nn.Module], nn.Module]] = {
    "ddp": data_parallel,
    "fsdp": sharded,
    "tensor": tensor_parallel,
}


def batch_of(step: int, mode: str) -> torch.Tensor:
    """Returns what this rank sees: with tensor parallelism all see the same."""
    rank = 0 if mode == "tensor" else dist.get_rank()
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(BATCH, 64, generator=generator)


def digest(model: nn.Module) -> str:
    """Returns a digest of this rank's parameters."""
    result = hashlib.sha256()
    for parameter in model.parameters():
        data = parameter.detach()
        local = data.to_local() if isinstance(data, DTensor) else data
        result.update(local.contiguous().view(torch.uint8).numpy().tobytes())
    return result.hexdigest()[:16]


def wait_for_line() -> None:
    """Rank 0 says that it is ready, and waits for a line; the others wait for it."""
    if dist.get_rank() == 0:
        sys.stdout.write('{"ready": true}\n')
        sys.stdout.flush()
        sys.stdin.readline()
    dist.barrier()


def train(mode: str, width: int, steps: int, *, waits: bool) -> dict[str, bool | float | str]:
    """Returns what rank 0 prints at the end."""
    model = MODES[mode](make_model(width))
    optimizer = torch.optim.Adam(model.parameters())
    started = 0.0
    for step in range(WARM_UP_STEPS + steps):
        if step == WARM_UP_STEPS:
            if waits:
                wait_for_line()
            started = time.monotonic()
        optimizer.zero_grad()
        model(batch_of(step, mode)).square().mean().backward()
        optimizer.step()
    return {"done": True, "since": started, "until": time.monotonic(), "digest": digest(model)}


def main() -> None:
    """Trains, and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=MODES, default="ddp")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--init", default="env://", help="how ranks find each other, as of torch")
    parser.add_argument("--wait", action="store_true", help="for a line, after warming up")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=given.init, rank=rank, world_size=ranks)
    # DistributedDataParallel must be gone before its group is: it may hang in torch otherwise.
    outcome = train(given.mode, given.width, given.steps, waits=given.wait)
    dist.barrier()
    if dist.get_rank() == 0:
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()
    leave_group()


if __name__ == "__main__":
    main()
