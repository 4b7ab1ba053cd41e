"""A job with small persistent and large ephemeral memory: the subject of the lanes benchmark.

A narrow network on many rows: its parameters are a few hundred KiB, its activations as large as
`--rows` says. With --shared it registers with gpushare, without it trains on stock torch.
Protocol as in `benchmarks.job`; the last line has every loss, bit for bit.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

WIDTH = 64
LAYERS = 4


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=65536, help="256 bytes an activation each")
    parser.add_argument("--iterations", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0, help="at least so long")
    parser.add_argument("--until-told", action="store_true", help="until another line comes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--fork-every", type=int, default=0, help="fork a child so often")
    parser.add_argument("--keep-at", type=int, default=-1, help="keep an activation of it")
    parser.add_argument("--linger", action="store_true", help="end when stdin is closed")
    return parser.parse_args()


class Trainer:
    """The network and what an iteration does."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Takes the persistent memory."""
        import torch

        torch.manual_seed(arguments.seed)
        layers: list[torch.nn.Module] = []
        for _ in range(LAYERS):
            layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()]
        self.model = torch.nn.Sequential(*layers)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.generator = torch.Generator().manual_seed(arguments.seed)
        self.arguments = arguments
        self.kept: list[tuple[torch.Tensor, float]] = []

    def iterate(self, number: int) -> str:
        """One step; the loss, exactly."""
        import torch

        self.optimizer.zero_grad(set_to_none=True)
        x = torch.rand(self.arguments.rows, WIDTH, generator=self.generator)
        y: torch.Tensor = self.model(x)
        loss = (y - x).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        if self.arguments.fork_every and number % self.arguments.fork_every == 0:
            _check_child(y.detach())
        if number == self.arguments.keep_at:
            self.kept.append((y.detach(), float(y.detach().double().sum())))
        for tensor, total in self.kept:
            assert float(tensor.double().sum()) == total, "a kept tensor has changed"
        return float(loss.detach()).hex()


def _check_child(tensor: torch.Tensor) -> None:
    """A forked child sees the tensor's bytes, and what it writes stays its own."""
    total = float(tensor.sum())
    child = os.fork()
    if child == 0:
        is_same = float(tensor.sum()) == total
        tensor.zero_()
        os._exit(0 if is_same else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, "the child saw other bytes"
    assert float(tensor.sum()) == total, "the child wrote to its parent's memory"


def _native() -> Any:
    from gpushare import _native as native

    return native.load()


def main() -> None:
    """Runs the job; see the module's text for the protocol."""
    arguments = _arguments()
    job = None
    if arguments.shared:
        import gpushare

        job = gpushare.register(name=f"lane-{arguments.seed}")
    # Modules that the first iteration would wait for, its lease open.
    import torch

    torch.optim.SGD([torch.zeros(1, requires_grad=True)])
    first = list(_native().reserved_range()) if arguments.shared else []
    print(json.dumps({"ready": True, "pid": os.getpid(), "range": first}), flush=True)
    sys.stdin.readline()
    trainer: Trainer | None = None
    losses: list[str] = []
    ends = time.monotonic() + arguments.seconds
    while (
        len(losses) < arguments.iterations
        or time.monotonic() < ends
        or (arguments.until_told and not select.select([sys.stdin], [], [], 0)[0])
    ):
        if job is not None:
            with job.iteration():
                trainer = trainer or Trainer(arguments)
                losses.append(trainer.iterate(len(losses)))
        else:
            trainer = trainer or Trainer(arguments)
            losses.append(trainer.iterate(len(losses)))
    stats = dict(_native().job_stats()) if arguments.shared else {}
    if job is not None:
        job.close()
    print(json.dumps({"done": True, "losses": losses, "stats": stats}), flush=True)
    if arguments.linger:
        sys.stdin.readline()


if __name__ == "__main__":
    main()
