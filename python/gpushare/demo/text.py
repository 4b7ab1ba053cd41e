"""The demo's data: the help topics that come with every Python, as characters."""

from __future__ import annotations

from dataclasses import dataclass
from pydoc_data import topics

import torch


@dataclass(frozen=True)
class Text:
    """A text as numbers of its characters."""

    characters: torch.Tensor
    """Shape (length,), int64, CPU: the number of each character in the vocabulary."""
    num_symbols: int
    """Size of the vocabulary."""

    def batch(
        self, batch_size: int, num_tokens: int, generator: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws random pieces of the text.

        Returns:
            Inputs and targets, both int64 of shape (batch_size, num_tokens); a target is the next
            character.
        """
        last_start = len(self.characters) - num_tokens - 1
        starts = torch.randint(last_start, (batch_size, 1), generator=generator)
        pieces = self.characters[starts + torch.arange(num_tokens + 1)]
        return pieces[:, :-1], pieces[:, 1:]


def load_text() -> Text:
    """Joins all topics of ``pydoc_data``, in the order of the module."""
    text = "".join(topics.topics.values())
    number_of = {character: number for number, character in enumerate(sorted(set(text)))}
    characters = torch.tensor([number_of[character] for character in text])
    return Text(characters=characters, num_symbols=len(number_of))
