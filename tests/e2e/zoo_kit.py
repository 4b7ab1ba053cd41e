"""What each loop of the zoo gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

STEPS = 12


class Zoo:
    """What a loop gets: torch, and a way to register."""

    def __init__(self, *, is_shared: bool) -> None:
        """Imports gpushare only when shared."""
        self.gpushare: Any = None
        if is_shared:
            import gpushare

            self.gpushare = gpushare
        import torch

        # The first optimizer imports much, which takes seconds on a busy machine.
        torch.optim.SGD([torch.zeros(1)], lr=1.0)
        torch.manual_seed(7)
        self.torch = torch
        self.job: Any = None

    def register(self, model: Any, optimizer: Any = None) -> Any:
        """Registers the model, if shared; returns it."""
        if self.gpushare is not None:
            self.job = self.gpushare.register(model, optimizer)
        return model

    def mlp(self) -> Any:
        """A small root module."""
        nn = self.torch.nn
        return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 8))

    def batches(self, count: int = STEPS) -> Iterator[tuple[Any, Any]]:
        """(32, 64) inputs and (32,) classes."""
        for _ in range(count):
            yield self.torch.randn(32, 64), self.torch.randint(8, (32,))

    def loss(self, model: Any, x: Any, y: Any) -> Any:
        """Cross entropy."""
        return self.torch.nn.functional.cross_entropy(model(x), y)
