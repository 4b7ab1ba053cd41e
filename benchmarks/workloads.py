"""The four models that benchmarks and end-to-end tests train: small, real, deterministic.

Each workload makes its own data from its seed, so that no run depends on a file or on another run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model with what it takes to train it."""

    model: nn.Module
    """The root module: one forward a step."""
    optimizer: torch.optim.Optimizer
    """Over all parameters of the model."""
    step: Callable[[int], torch.Tensor]
    """Trains on the batch with this number; returns the loss, a scalar tensor."""


class SmallTransformer(nn.Module):
    """A causal character transformer."""

    def __init__(self, *, symbols: int, width: int, layers: int, tokens: int) -> None:
        """Sizes: `symbols` in the vocabulary, `width` features, `tokens` positions."""
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.position = nn.Parameter(torch.zeros(tokens, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, dim_feedforward=4 * width, dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, symbols)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(tokens))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Token numbers (batch, tokens), int64 -> logits (batch, tokens, symbols)."""
        return self.head(self.encoder(self.embedding(x) + self.position, mask=self.mask))


class SmallLstm(nn.Module):
    """A character LSTM of two layers."""

    def __init__(self, *, symbols: int, width: int) -> None:
        """Sizes: `symbols` in the vocabulary, `width` hidden features."""
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, symbols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Token numbers (batch, tokens), int64 -> logits (batch, tokens, symbols)."""
        return self.head(self.lstm(self.embedding(x))[0])


def _cnn() -> nn.Module:
    layers: list[nn.Module] = []
    channels = 3
    for width in (32, 32, 64, 64, 128, 128):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        if width != channels and channels >= 32:
            layers.append(nn.MaxPool2d(2))
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def _batch(name: str, size: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """`size` samples: inputs, and what the model is to say of them."""
    if name in ("mlp", "cnn"):
        shape = (784,) if name == "mlp" else (3, 32, 32)
        return (
            torch.randn(size, *shape, generator=generator),
            torch.randint(10, (size,), generator=generator),
        )
    text = torch.randint(64, (size, TOKENS[name] + 1), generator=generator)
    return text[:, :-1], text[:, 1:]


BATCH_SIZES = {"mlp": 256, "cnn": 64, "transformer": 8, "lstm": 16}
TOKENS = {"transformer": 128, "lstm": 64}
NAMES = tuple(BATCH_SIZES)
OPTIMIZERS = ("adam", "sgd")


def build(
    name: str,
    *,
    seed: int = 0,
    optimizer: str = "adam",
    device: str = "cpu",
    batch_size: int | None = None,
) -> Workload:
    """The workload `name` on `device`, with parameters and data from `seed`.

    A batch has `batch_size` samples; the workload's own number of them (BATCH_SIZES) if None.

    Raises:
        ValueError: for a name outside NAMES or an optimizer outside OPTIMIZERS.
    """
    if name not in NAMES:
        raise ValueError(f"workload {name!r}: one of {', '.join(NAMES)}")
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer {optimizer!r}: one of {', '.join(OPTIMIZERS)}")
    torch.manual_seed(seed)
    model: nn.Module
    if name == "mlp":
        model = nn.Sequential(
            nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
        )
    elif name == "cnn":
        model = _cnn()
    elif name == "transformer":
        model = SmallTransformer(symbols=64, width=256, layers=4, tokens=TOKENS[name])
    else:
        model = SmallLstm(symbols=64, width=256)
    model.to(device)
    parameters = model.parameters()
    made: torch.optim.Optimizer = (
        torch.optim.Adam(parameters, lr=1e-3)
        if optimizer == "adam"
        else torch.optim.SGD(parameters, lr=1e-2, momentum=0.9)
    )

    size = batch_size or BATCH_SIZES[name]

    def step(number: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(1_000_003 * seed + number)
        x, y = (part.to(device) for part in _batch(name, size, generator))
        made.zero_grad(set_to_none=True)
        logits = model(x)
        loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
        loss.backward()
        made.step()
        return loss.detach()

    return Workload(model=model, optimizer=made, step=step)
