"""A stranger's sweep: three models, one after the other, all of it made between iterations.

Knows nothing of gpushare. Each model is trained with Adam, averaged, stopped early, and goes on
from a copy of its optimizer's state. The last line is a digest of all parameters.
"""

from __future__ import annotations

import copy
import hashlib

import torch
from torch import nn

STEPS = 12


def train(model: nn.Module, optimizer: torch.optim.Optimizer, averages: list[torch.Tensor]) -> None:
    """Some steps, and after each of them the moving averages."""
    for _ in range(STEPS):
        x, y = torch.randn(64, 256), torch.randint(10, (64,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for average, parameter in zip(averages, model.parameters(), strict=True):
                average.lerp_(parameter, 0.1)


def main() -> None:
    """The whole sweep."""
    digest = hashlib.sha256()
    for width in (512, 1024, 1536):
        torch.manual_seed(width)
        model = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, width))
        optimizer = torch.optim.Adam(model.parameters())
        averages = [parameter.detach().clone() for parameter in model.parameters()]
        train(model, optimizer, averages)
        best = copy.deepcopy(model.state_dict())
        state = copy.deepcopy(optimizer.state_dict())
        train(model, optimizer, averages)
        model.load_state_dict(best)
        optimizer = torch.optim.Adam(model.parameters())
        optimizer.load_state_dict(state)
        train(model, optimizer, averages)
        for tensor in (*model.parameters(), *averages):
            digest.update(tensor.detach().numpy().tobytes())
    print(digest.hexdigest())


if __name__ == "__main__":
    main()
