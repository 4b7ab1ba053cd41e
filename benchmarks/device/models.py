"""The models that the device benchmarks train, on data that lies on the device already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from benchmarks.device.machine import size

NAMES = ("mlp", "transformer", "mixed", "filler", "inference")


@dataclass(frozen=True, kw_only=True)
class Training:
    """A model and its step."""

    model: nn.Module
    """The root module, which runs one forward pass a step."""
    optimizer: torch.optim.Optimizer | None
    """None: the model does inference only."""
    step: Callable[[], Any]
    """Queues one step on the device, and does not wait for it."""


def build(name: str, *, state_bytes: int = 0) -> Training:
    """Makes a model and its step on the device.

    Args:
        name: "mlp" has many small kernels, so the CPU's side counts. "transformer" has large ones.
            "mixed" has convolutions by cuDNN, in bf16. "filler" has as much state as is asked for.
            "inference" is a forward pass.
        state_bytes: The bytes of a filler's parameters, gradients and optimizer state.

    Raises:
        ValueError: There is no model of that name.
    """
    makers = {
        "mlp": _mlp,
        "transformer": _transformer,
        "mixed": _mixed,
        "filler": lambda: _filler(state_bytes),
        "inference": _inference,
    }
    if name not in makers:
        raise ValueError(f"model {name!r}: one of {', '.join(NAMES)}")
    torch.manual_seed(0)
    return makers[name]()


def _training(
    model: nn.Module, forward: Callable[[], torch.Tensor], *, foreach: bool | None = None
) -> Training:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=foreach)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = forward()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Training(model=model, optimizer=optimizer, step=step)


def _mlp() -> Training:
    layers: list[nn.Module] = []
    for _ in range(size(24, 3)):
        layers += [nn.Linear(256, 256), nn.GELU()]
    model = nn.Sequential(*layers).to("cuda")
    x = torch.randn(64, 256).to("cuda")
    return _training(model, lambda: model(x).square().mean())


def _transformer() -> Training:
    width, depth, tokens, batch = size(1024, 32), size(12, 2), size(512, 16), size(8, 2)
    layer = nn.TransformerEncoderLayer(
        width, width // 16 if width < 64 else 16, 4 * width, dropout=0.0, batch_first=True
    )
    model = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False).to("cuda")
    x = torch.randn(batch, tokens, width).to("cuda")
    return _training(model, lambda: model(x).square().mean())


def _mixed() -> Training:
    width = size(128, 4)
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(size(16, 1)):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    model = nn.Sequential(*layers).to("cuda")
    x = torch.randn(size(64, 2), 3, size(56, 8), size(56, 8)).to("cuda")

    def forward() -> torch.Tensor:
        with torch.autocast("cuda", torch.bfloat16):
            return model(x).float().square().mean()

    return _training(model, forward)


def _filler(state_bytes: int) -> Training:
    # Parameters, gradients and Adam's two states take four times the parameters, 4 bytes a number.
    width = size(4096, 256)
    depth = max(1, state_bytes // (4 * 4 * width * width))
    model = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(depth))).to("cuda")
    x = torch.randn(size(256, 8), width).to("cuda")
    # "foreach" copies all parameters for a moment, and the copy would not fit beside the state.
    return _training(model, lambda: model(x).square().mean(), foreach=False)


def _inference() -> Training:
    width = size(2048, 64)
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(4))).to("cuda").eval()
    x = torch.randn(8, width).to("cuda")

    def step() -> torch.Tensor:
        with torch.no_grad():
            return model(x)

    return Training(model=model, optimizer=None, step=step)
