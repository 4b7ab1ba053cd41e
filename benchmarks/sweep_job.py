"""A small job of a hyper-parameter sweep: an MLP, a learning rate, and a pause for each batch.

The pause stands for reading a batch: nothing computes then. Protocol as in `benchmarks.job`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time

WIDTH = 256
BATCH = 256
WARM_UP = 3
"""Iterations before it is ready."""


def main() -> None:
    """Runs the job; see the module's text for the protocol."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, required=True, help="learning rate")
    parser.add_argument("--pause", type=float, required=True, help="seconds, before each iteration")
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1, help="that work on an operation")
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--linger", action="store_true", help="end when stdin is closed")
    arguments = parser.parse_args()
    if arguments.shared:
        import gpushare
    import torch
    from torch import nn

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH), nn.ReLU(),
        nn.Linear(WIDTH, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.rate, momentum=0.9)
    job = None
    if arguments.shared:
        total = WARM_UP + arguments.iterations
        job = gpushare.register(model, optimizer, name="sweep", iterations=total)
    losses = hashlib.sha256()

    def iterate(pause: float) -> None:
        time.sleep(pause)
        inputs = torch.randn(BATCH, WIDTH)
        targets = torch.randint(0, 10, (BATCH,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.update(loss.detach().numpy().tobytes())

    for _ in range(WARM_UP):
        iterate(0.0)
    if job is not None:
        job.park()
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    started = time.monotonic()
    for _ in range(arguments.iterations):
        iterate(arguments.pause)
    ended = time.monotonic()
    if job is not None:
        job.close()
    said = {"started": started, "ended": ended, "digest": losses.hexdigest()}
    print(json.dumps({"done": True, **said}), flush=True)
    if arguments.linger:
        sys.stdin.readline()


if __name__ == "__main__":
    main()
