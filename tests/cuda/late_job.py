"""A job that leaves work pending wherever CUDA lets it: at boundaries, on side streams, in copies.

Started as `benchmarks.job` is, with its protocol. Its batches come from pinned memory on one side
stream, figures of its training leave on another, and nothing waits for either until all is over.
With --shared each step is an iteration, whose boundary finds that work under way.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import sys
from typing import Any

from tests.cuda import fake

ROWS = 64
WIDTH = 512


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


class Training:
    """An MLP, and the two streams beside the one that it computes on."""

    def __init__(self, seed: int, steps: int) -> None:
        """Allocates all that lasts."""
        import torch
        from torch import nn

        torch.manual_seed(seed)
        self.model = nn.Sequential(
            nn.Linear(WIDTH, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
        ).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self._batches = torch.randn(steps, ROWS, WIDTH).pin_memory()
        self._loading = torch.cuda.Stream()
        self._measuring = torch.cuda.Stream()
        self._sums = torch.zeros(steps, 1024, device="cuda")
        self._losses = torch.empty(steps).pin_memory()
        self._weights = torch.empty(steps, 1024, 1024).pin_memory()

    def step(self, number: int) -> None:
        """One step, of which much is pending when it returns."""
        import torch

        batch = self._load(number)
        loss = self.model(batch).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self._measure(number, loss.detach())
        del batch, loss
        torch.empty(3 << 20, device="cuda").fill_(number)  # freed, its kernel pending

    def _load(self, number: int) -> Any:
        import torch

        with torch.cuda.stream(self._loading):
            batch = self._batches[number].to("cuda", non_blocking=True)
            batch += 1
        torch.cuda.current_stream().wait_stream(self._loading)
        batch.record_stream(torch.cuda.current_stream())
        return batch

    # Reads what the next step writes, so that step waits for it, and nobody else does.
    def _measure(self, number: int, loss: Any) -> None:
        import torch

        weight = self.model[2].weight.detach()
        copy = weight.clone()
        self._measuring.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._measuring):
            self._losses[number].copy_(loss, non_blocking=True)
            self._sums[number].copy_(copy.sum(0))
            self._weights[number].copy_(copy, non_blocking=True)
        for used in (copy, loss):
            used.record_stream(self._measuring)

    def digest(self) -> str:
        """Of every loss, figure and parameter."""
        import torch

        torch.cuda.synchronize()
        parts = [self._losses, self._weights, self._sums, *self.model.parameters()]
        whole = hashlib.sha256()
        for part in parts:
            whole.update(part.detach().cpu().numpy().tobytes())
        return whole.hexdigest()


def main() -> None:
    """Runs the job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--shared", action="store_true")
    arguments = parser.parse_args()
    if arguments.shared:
        import gpushare
    fake.install_ops()
    training = Training(arguments.seed, arguments.steps)
    job = gpushare.register(None, name=f"late-{arguments.seed}") if arguments.shared else None
    _say(ready=True, pid=os.getpid())
    sys.stdin.readline()
    most_pending = 0
    for number in range(arguments.steps):
        with job.iteration() if job is not None else contextlib.nullcontext():
            training.step(number)
            most_pending = max(most_pending, fake.num_pending())
    stats: dict[str, Any] = {}
    if job is not None:
        from gpushare import _native

        stats = dict(_native.load().job_stats())
        job.close()
    _say(
        done=True,
        digest=training.digest(),
        violations=fake.violations(),
        most_pending=most_pending,
        stats=stats,
    )


if __name__ == "__main__":
    main()
