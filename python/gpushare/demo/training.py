"""The demo's training loop: ordinary torch, with a clock at its iterations."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from gpushare._torch.recorder import hash_tensor
from gpushare.demo.models import make_model
from gpushare.demo.workload import Workload

if TYPE_CHECKING:
    from gpushare.demo.text import Text


@dataclass
class Outcome:
    """What a training run computed, and when."""

    losses: list[str] = field(default_factory=list)
    """A hash of each iteration's loss."""
    parameters_hash: str = ""
    """Of all parameters at the end."""
    spans_ns: list[tuple[int, int]] = field(default_factory=list)
    """Begin of the root forward (past the gate, where there is one) and end of the optimizer's step
    of each iteration, CLOCK_MONOTONIC: comparable between processes."""
    last_loss: float = float("nan")
    """Of the last iteration."""


def train(
    workload: Workload,
    text: Text,
    on_built: Callable[[nn.Module, torch.optim.Optimizer], None],
    on_iteration: Callable[[int], None],
) -> Outcome:
    """Trains one workload from its seed.

    Args:
        workload: What to train.
        text: The data.
        on_built: Called with model and optimizer before the first iteration.
        on_iteration: Called after each iteration with the number of those done.
    """
    torch.manual_seed(workload.seed)
    batches = torch.Generator().manual_seed(workload.seed)
    model = make_model(text.num_symbols, workload.size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=workload.learning_rate)
    outcome = Outcome()
    # The clock's hooks stand inside gpushare's: the one at the end comes before the lease is given
    # back, the one at the begin after the gate has let this job in.
    begins_ns: list[int] = []
    ends_ns: list[int] = []
    optimizer.register_step_post_hook(lambda *_: ends_ns.append(time.monotonic_ns()))
    on_built(model, optimizer)
    model.register_forward_pre_hook(lambda *_: begins_ns.append(time.monotonic_ns()))
    for number in range(workload.num_iterations):
        inputs, targets = text.batch(workload.batch_size, workload.size.num_tokens, batches)
        loss = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        outcome.losses.append(hash_tensor(loss))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        outcome.last_loss = loss.item()
        # The step ends the iteration; nothing of it may stay alive.
        del loss, inputs, targets
        optimizer.step()
        outcome.spans_ns.append((begins_ns[-1], ends_ns[-1]))
        on_iteration(number + 1)
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(hash_tensor(parameter).encode())
    outcome.parameters_hash = digest.hexdigest()
    return outcome


def warm_up(text: Text, workload: Workload) -> None:
    """Runs one tiny iteration, so that torch's lazy imports and thread pools are not timed."""
    tiny = Workload("warm-up", workload.size, 1, 1, 1e-3, seed=0)
    train(tiny, text, lambda *_: None, lambda _: None)
