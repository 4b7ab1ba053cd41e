"""A job whose optimizer keeps two thirds of its live memory: the subject of `memory_late`.

A stack of wide layers under Adam. With --marked its iterations are `with job.iteration()`, so that
each waits for all of its memory; else gpushare's hooks find them, and optimizer state follows.
Protocol as in `benchmarks.job`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
import time

WIDTH = 1024
LAYER_MIB = 12
"""A weight of 1024 x 1024 float32, and Adam's two buffers."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--rows", type=int, default=32, help="of a batch: its time")
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--marked", action="store_true")
    parser.add_argument("--linger", action="store_true", help="end when stdin is closed")
    return parser.parse_args()


def main() -> None:
    """Runs the job."""
    arguments = _arguments()
    import torch

    import gpushare

    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    started = time.monotonic()
    torch.manual_seed(arguments.seed)
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(arguments.layers)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    job = gpushare.register(model, optimizer, name=f"optimizer-{arguments.seed}")
    batch = torch.randn(arguments.rows, WIDTH)
    for _ in range(arguments.iterations):
        with job.iteration() if arguments.marked else contextlib.nullcontext():
            optimizer.zero_grad(set_to_none=True)
            model(batch).square().mean().backward()
            optimizer.step()
    digest = hashlib.sha256()
    with job.iteration():
        for parameter in model.parameters():
            digest.update(str(parameter.detach().view(torch.int32).sum(dim=1).tolist()).encode())
    ended = time.monotonic()
    stats = job.stats()
    # Nobody could spill it: this thread never comes to the gate again.
    del model, optimizer, layers, parameter
    job.close()
    outcome = {
        "started": started,
        "ended": ended,
        "digest": digest.hexdigest(),
        "leases": stats.leases,
    }
    print(json.dumps({"done": True, **outcome}), flush=True)
    if arguments.linger:
        sys.stdin.readline()


if __name__ == "__main__":
    main()
