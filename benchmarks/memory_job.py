"""A job whose memory has the size that is asked for: the subject of the memory benchmark.

Layers with Adam's buffers are its live memory; each iteration trains one of them on activations
of a given size, so that it is short however large the job is. Everything is built in the first
iterations, a lease at hand: other jobs' memory can leave only while they wait in their gates.
Protocol as in `benchmarks.job`. Sizes are whole chunks, but for what tensors under 1 MiB take.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

WIDTH = 1024
ROWS = 256
MIB = 1 << 20
LAYER_MIB = 12
"""A weight of 1024 x 1024 float32, and Adam's two buffers."""
SCRATCH_MIB = 10
"""Of an iteration besides its activations: gradient, denominator, a chunk for small products."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--live-mib", type=int, required=True, help="a multiple of 12")
    parser.add_argument("--ephemeral-mib", type=int, default=32)
    parser.add_argument("--iterations", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0, help="end after so long instead")
    parser.add_argument("--passes", type=int, default=1, help="layers trained in an iteration")
    parser.add_argument("--products", type=int, default=1, help="matrix products a layer")
    parser.add_argument("--gap-seconds", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--linger", action="store_true", help="end when stdin is closed")
    return parser.parse_args()


@dataclass(kw_only=True)
class Layer:
    """A weight and Adam's running means of its gradient and of its square."""

    weight: torch.Tensor
    mean: torch.Tensor
    square: torch.Tensor

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """All that outlives an iteration."""
        return self.weight, self.mean, self.square


@dataclass(kw_only=True)
class Model:
    """The layers, and what one iteration does to them."""

    arguments: argparse.Namespace
    layers: list[Layer] = field(default_factory=list)

    def build(self) -> None:
        """Takes all live memory."""
        import torch

        generator = torch.Generator().manual_seed(self.arguments.seed)
        for _ in range(self.arguments.live_mib // LAYER_MIB):
            weight = torch.empty(WIDTH, WIDTH).normal_(std=0.03, generator=generator)
            mean, square = torch.zeros_like(weight), torch.full_like(weight, 1e-4)
            self.layers.append(Layer(weight=weight, mean=mean, square=square))

    def iterate(self, number: int) -> None:
        """Trains the layers whose turn it is."""
        import torch

        floats = (self.arguments.ephemeral_mib - SCRATCH_MIB) * MIB // 4
        activations = torch.full((floats,), 1e-3 * (number % 7 + 1))
        for step in range(self.arguments.passes):
            layer = self.layers[(number * self.arguments.passes + step) % len(self.layers)]
            self._train(layer, activations[: ROWS * WIDTH].view(ROWS, WIDTH))

    def _train(self, layer: Layer, x: torch.Tensor) -> None:
        for _ in range(self.arguments.products):
            x = (x @ layer.weight).tanh_()
        gradient = (x.T @ x).div_(ROWS)
        layer.mean.mul_(0.9).add_(gradient, alpha=0.1)
        layer.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        layer.weight.addcdiv_(layer.mean, layer.square.sqrt().add_(1e-8), value=-1e-3)

    def digest(self) -> str:
        """Of every byte of live memory, by the sums of rows: a tenth of a second."""
        import torch

        whole = hashlib.sha256()
        for layer in self.layers:
            for tensor in layer.tensors():
                sums = tensor.view(torch.int64).sum(dim=1)
                whole.update(str(sums.tolist()).encode())
        return whole.hexdigest()


def _stats() -> dict[str, Any]:
    from gpushare import _native

    return dict(_native.load().job_stats())


def _train(job: Any, model: Model, arguments: argparse.Namespace) -> dict[str, Any]:
    """Iterates to the end; says what was seen at the first iteration of each lease."""
    turns: list[tuple[float, int, int]] = []
    seconds: list[float] = []
    digest = ""
    number = leases = 0
    started = time.monotonic()
    while number < arguments.iterations or time.monotonic() < started + arguments.seconds:
        with job.iteration():
            begun = time.monotonic()
            if not model.layers:
                model.build()
            if arguments.seconds and (stats := _stats())["leases"] > leases:
                leases = stats["leases"]
                moved = stats["spilled_total_bytes"], stats["restored_total_bytes"]
                turns.append((begun, *moved))
            model.iterate(number)
            number += 1
            if number == arguments.iterations:
                digest = model.digest()
            seconds.append(time.monotonic() - begun)
        if arguments.gap_seconds and number < arguments.iterations:
            time.sleep(arguments.gap_seconds)
    return {
        "started": started,
        "ended": time.monotonic(),
        "turns": turns,
        "iteration_seconds": seconds,
        "digest": digest,
        "live_bytes": sum(t.nbytes for layer in model.layers for t in layer.tensors()),
        "stats": _stats(),
    }


def main() -> None:
    """Runs the job; see the module's text for the protocol."""
    arguments = _arguments()
    import gpushare

    job = gpushare.register(name=f"memory-{arguments.seed}")
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    model = Model(arguments=arguments)
    seen = _train(job, model, arguments)
    # Nobody could spill it: this thread never comes to the gate again.
    model.layers.clear()
    job.close()
    print(json.dumps({"done": True, **seen}), flush=True)
    if arguments.linger:
        sys.stdin.readline()


if __name__ == "__main__":
    main()
