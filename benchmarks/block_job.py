"""A job whose model has many blocks: it trains, or answers requests, on one core.

The core is the device: with all jobs on it they share it as a GPU is shared, whoever plans that.
Protocol as in `benchmarks.job`; the last line has each iteration's begin and end on
CLOCK_MONOTONIC, how often one was interrupted, and for how long it held leases. A request begins
when it comes, before the job has the device.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import sys
import time
from contextlib import ExitStack
from typing import Any

from benchmarks.paced_job import SEED, SIZE, WARM_UP, is_told
from benchmarks.processes import JobProcess


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="blocks")
    parser.add_argument("--blocks", type=int, required=True)
    parser.add_argument("--products", type=int, help="of a block", required=True)
    parser.add_argument("--train", action="store_true", help="else it answers requests")
    parser.add_argument("--gap", type=float, default=0.0, help="seconds: 1/2 to 3/2 of it, drawn")
    parser.add_argument("--iterations", type=int, default=0, help="0: until another line comes")
    parser.add_argument("--deadline", type=float, default=0.0, help="seconds; 0: none")
    return parser.parse_args()


def start(
    stack: ExitStack,
    env: dict[str, str],
    name: str,
    *,
    blocks: int,
    products: int,
    iterations: int,
    gap: float = 0.0,
    deadline: float = 0.0,
    trains: bool = False,
) -> JobProcess:
    """Starts one in a process of its own; the arguments are those of the program."""
    flags = ["--name", name, "--blocks", str(blocks), "--products", str(products)]
    flags += ["--iterations", str(iterations), "--gap", str(gap), "--deadline", str(deadline)]
    flags += ["--train"] if trains else []
    return stack.enter_context(JobProcess(*flags, env=env, module="benchmarks.block_job"))


def share_a_core() -> None:
    """Keeps this process on the first core that it may use."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _make_model(blocks: int, products: int) -> Any:
    import torch

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.eye(SIZE))

        def forward(self, x: Any) -> Any:
            for _ in range(products):
                x = torch.mm(x, self.weight)
            return x

    return torch.nn.Sequential(*(Block() for _ in range(blocks)))


def main() -> None:
    """Runs the job; see the module's text for the protocol."""
    arguments = _arguments()
    share_a_core()
    import torch

    import gpushare

    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    model = _make_model(arguments.blocks, arguments.products).train(arguments.train)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9) if arguments.train else None
    job = gpushare.register(
        model, optimizer, name=arguments.name, deadline=arguments.deadline or None
    )
    x = torch.eye(SIZE)
    gaps = random.Random(SEED)

    def iterate() -> tuple[float, float]:
        begin = time.monotonic()
        if optimizer is None:
            with torch.no_grad():
                model(x)
        else:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        return begin, time.monotonic()

    for _ in range(WARM_UP):
        iterate()
    job.park()
    gc.collect()
    gc.freeze()  # or a full collection, 0.1 s with torch, comes within a block
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    held_before = job.active_seconds
    seen = []
    while not (len(seen) == arguments.iterations if arguments.iterations else is_told()):
        seen.append(iterate())
        if arguments.gap:
            time.sleep(arguments.gap * (0.5 + gaps.random()))
    interruptions = job.stats().interruptions if job.is_managed else 0
    last = {
        "done": True,
        "iterations": seen,
        "interruptions": interruptions,
        "held_seconds": job.active_seconds - held_before,
    }
    print(json.dumps(last), flush=True)
    job.close()


if __name__ == "__main__":
    main()
