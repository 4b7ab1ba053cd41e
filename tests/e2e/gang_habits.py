"""Two ranks that do what distributed programs do beside plain steps, one habit after the other.

Rank 0 speaks as a `JobProcess`: at the end it says, of each habit, a digest of what was computed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.parallel import DistributedDataParallel

from benchmarks.ranks_program import digest, sharded
from gpushare import auto
from tests.support.gloo import leave_group

STEPS = 12
WIDTH = 256


def make_model() -> nn.Sequential:
    """Returns the same on each rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 64))


def adam(model: nn.Module) -> torch.optim.Optimizer:
    """Returns the optimizer of a model."""
    return torch.optim.Adam(model.parameters())


def loss_of(model: nn.Module) -> torch.Tensor:
    """Returns the loss of the next batch."""
    out: torch.Tensor = model(torch.randn(32, 64))
    return out.square().mean()


def evaluates(rank: int) -> str:
    """Rank 0 evaluates by itself after some steps, and the other one waits for it."""
    inner = make_model()
    model = DistributedDataParallel(inner)
    optimizer = adam(model)
    seen = hashlib.sha256()
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
        if step % 4 == 3:
            if rank == 0:
                with torch.no_grad():
                    seen.update(b"".join(loss_of(inner).numpy().tobytes() for _ in range(6)))
            dist.barrier()
    return digest(model) + seen.hexdigest()[:16]


def accumulates(rank: int) -> str:
    """Four backwards make a step, of which the last one speaks to the other rank."""
    model = DistributedDataParallel(make_model())
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        with model.no_sync():
            for _ in range(3):
                loss_of(model).backward()
        loss_of(model).backward()
        optimizer.step()
    return digest(model)


def joins(rank: int) -> str:
    """Rank 1 has fewer batches, and takes part in the other's collectives at its end."""
    model = DistributedDataParallel(make_model())
    optimizer = adam(model)
    with Join([model]):
        for _ in range(STEPS - 5 * rank):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
    return digest(model)


def shards(rank: int) -> str:
    """FSDP2: parameters are gathered before each use."""
    model = sharded(make_model())
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
    return digest(model)


def pipes(rank: int) -> str:
    """A stage each: the last one ends its backwards first, so the ranks step at different times."""
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 64))
    stage = PipelineStage(model, rank, dist.get_world_size(), torch.device("cpu"))
    schedule = Schedule1F1B(stage, 4, loss_fn=nn.functional.mse_loss)
    optimizer = adam(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(torch.randn(32, 64))
        else:
            schedule.step(target=torch.randn(32, 64))
        optimizer.step()
    return digest(model)


HABITS: tuple[Callable[[int], str], ...] = (evaluates, accumulates, joins, shards, pipes)


def main(store: str) -> None:
    """Trains with one habit after the other, and prints."""
    torch.set_num_threads(1)
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks)
    found = {}
    for habit in HABITS:
        torch.manual_seed(rank)
        found[habit.__name__] = habit(rank)
        print(habit.__name__, "done", rank, file=sys.stderr, flush=True)
        dist.barrier()
    if rank == 0:
        sys.stdout.write(json.dumps({"done": True, "digest": found}) + "\n")
        sys.stdout.flush()
    leave_group()


if __name__ == "__main__":
    auto.enable()
    main(sys.argv[1])
