"""What each job of the demo trains: three real workloads, and one that will be killed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class ModelSize:
    """A model's kind and shape."""

    kind: Literal["transformer", "lstm"]
    """Which of the two models."""
    width: int
    """Channels of the hidden state."""
    num_layers: int
    """Layers."""
    num_tokens: int
    """Characters in a training example."""


@dataclass(frozen=True)
class Workload:
    """One job: what it trains, and for how long."""

    name: str
    """Shown in the table, and the job's name at the coordinator."""
    size: ModelSize
    """The model."""
    batch_size: int
    """Examples in an iteration."""
    num_iterations: int
    """Optimizer steps."""
    learning_rate: float
    """Of AdamW."""
    seed: int
    """Of the weights and of the batches."""

    def shortened(self, num_iterations: int) -> Workload:
        """Returns the same job with fewer iterations."""
        return replace(self, num_iterations=min(num_iterations, self.num_iterations))


_TRANSFORMER = ModelSize("transformer", width=128, num_layers=4, num_tokens=256)
_LSTM = ModelSize("lstm", width=256, num_layers=2, num_tokens=128)

FULL = (
    Workload("gpt-fast", _TRANSFORMER, 32, 11, 3e-3, seed=1),
    Workload("gpt-slow", _TRANSFORMER, 32, 11, 3e-4, seed=1),
    Workload("lstm", _LSTM, 52, 22, 2e-3, seed=2),
)
"""Sized so that one after the other takes about 12 s on two cores, and all scenes two minutes."""

_SHORT_TRANSFORMER = replace(_TRANSFORMER, num_tokens=128)
_SHORT_LSTM = replace(_LSTM, num_tokens=64)

QUICK = (
    Workload("gpt-fast", _SHORT_TRANSFORMER, 8, 12, 3e-3, seed=1),
    Workload("gpt-slow", _SHORT_TRANSFORMER, 8, 12, 3e-4, seed=1),
    Workload("lstm", _SHORT_LSTM, 12, 16, 2e-3, seed=2),
)
"""For tests: the same models on less text at once, so less time and memory an iteration."""


def find_workload(name: str, *, is_quick: bool) -> Workload:
    """Returns a workload by its name; "victim" is one that trains until somebody kills it.

    Raises:
        ValueError: There is none of that name.
    """
    workloads = QUICK if is_quick else FULL
    if name == "victim":
        return replace(workloads[0], name=name, num_iterations=1_000_000, seed=3)
    for workload in workloads:
        if workload.name == name:
            return workload
    raise ValueError(f"no workload {name!r}: may be victim, {', '.join(w.name for w in workloads)}")
