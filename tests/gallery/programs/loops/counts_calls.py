"""Counts the calls of torch and the operations below them, as profilers and counters of FLOPs do."""

from __future__ import annotations

import collections
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

counts: collections.Counter[str] = collections.Counter()


class Calls(TorchFunctionMode):
    """What the program calls."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        counts[getattr(function, "__name__", "other")] += 1
        return function(*args, **(kwargs or {}))


class Operations(TorchDispatchMode):
    """What torch does for it."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        counts[str(function)] += 1
        return function(*args, **(kwargs or {}))


torch.manual_seed(0)
model = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
optimizer = torch.optim.Adam(model.parameters(), fused=True)
for _ in range(10):
    with Calls(), Operations():
        loss = model(torch.randn(8, 20, 128)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item().hex(), sorted(counts.items()))
