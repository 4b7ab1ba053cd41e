"""The demo's models: a character transformer and a character LSTM, in plain torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import nn
from torch.nn import functional

if TYPE_CHECKING:
    from gpushare.demo.workload import ModelSize


class Block(nn.Module):
    """One layer of the transformer: causal self-attention, then a perceptron."""

    def __init__(self, width: int, num_heads: int) -> None:
        """Makes the layer's weights."""
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.perceptron = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Maps (batch, tokens, width) to the same shape."""
        batch_size, num_tokens, width = hidden.shape
        heads = self.query_key_value(self.attention_norm(hidden))
        heads = heads.view(batch_size, num_tokens, 3, self.num_heads, width // self.num_heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        mixed = mixed.transpose(1, 2).reshape(batch_size, num_tokens, width)
        hidden = hidden + self.attention_out(mixed)
        return hidden + cast("torch.Tensor", self.perceptron(hidden))


class CharTransformer(nn.Module):
    """Predicts the next character from at most ``num_tokens`` before it."""

    def __init__(self, num_symbols: int, size: ModelSize) -> None:
        """Makes the weights from torch's global generator."""
        super().__init__()
        self.symbols = nn.Embedding(num_symbols, size.width)
        self.positions = nn.Embedding(size.num_tokens, size.width)
        self.blocks = nn.Sequential(*(Block(size.width, 4) for _ in range(size.num_layers)))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, num_symbols)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """Maps int64 (batch, tokens) to scores (batch, tokens, symbols)."""
        hidden = self.symbols(characters) + self.positions.weight[: characters.shape[1]]
        return cast("torch.Tensor", self.head(self.norm(self.blocks(hidden))))


class CharLstm(nn.Module):
    """Predicts the next character with a recurrent network."""

    def __init__(self, num_symbols: int, size: ModelSize) -> None:
        """Makes the weights from torch's global generator."""
        super().__init__()
        self.symbols = nn.Embedding(num_symbols, size.width)
        self.lstm = nn.LSTM(size.width, size.width, size.num_layers, batch_first=True)
        self.head = nn.Linear(size.width, num_symbols)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        """Maps int64 (batch, tokens) to scores (batch, tokens, symbols)."""
        hidden, _ = self.lstm(self.symbols(characters))
        return cast("torch.Tensor", self.head(hidden))


def make_model(num_symbols: int, size: ModelSize) -> nn.Module:
    """Makes the model that a workload names."""
    if size.kind == "transformer":
        return CharTransformer(num_symbols, size)
    return CharLstm(num_symbols, size)
