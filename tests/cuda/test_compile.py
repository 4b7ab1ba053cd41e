"""Compiled models train on the fake device as without gpushare, with their memory moved each step.

Inductor's kernels need a GPU: the device suite has them (tests/gpu/test_graphs.py). What is traced
and cut into graphs, and what is seen of it, is the same with the backends used here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cuda import fake
from tests.cuda.child import Parent, run

STEPS = 4
WAYS = ["model, then register", "register, then model", "whole step"]


def trains_compiled(_parent: Parent, backend: str, way: str) -> dict[str, Any]:
    """A child: `way` is when the model is compiled, or that the whole step is."""
    import torch
    from torch import nn

    import gpushare

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Dropout(0.1), nn.Linear(512, 16))
    model.cuda()
    optimizer = torch.optim.Adam(model.parameters())
    called = torch.compile(model, backend=backend) if way == WAYS[0] else model
    job = gpushare.register(called, optimizer)
    if way == WAYS[1]:
        called = torch.compile(model, backend=backend)

    def step(batch: Any) -> Any:
        optimizer.zero_grad()
        loss = called(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    stepped = torch.compile(step, backend=backend) if way == WAYS[2] else step
    losses = []
    for number in range(STEPS):
        batch = torch.randn(32, 256, generator=torch.Generator().manual_seed(number)).cuda()
        losses.append(stepped(batch).item())
    weights = [value.detach().cpu().double().sum().item() for value in model.parameters()]
    stats = vars(job.stats()) if job.is_managed else {}
    return {"trained": [losses, weights], "stats": stats, "violations": fake.violations()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_trains_as_alone_while_its_memory_moves(
    backend: str, way: str, coordinator: Callable[..., dict[str, str]]
) -> None:
    alone = run(trains_compiled, backend, way, GPUSHARE_DISABLE="1", late=True)
    shared = run(
        trains_compiled, backend, way, late=True, **coordinator(require="1", force_spill="1")
    )
    assert shared["trained"] == alone["trained"]
    assert shared["violations"] == []
    assert shared["stats"]["iterations"] == STEPS
    assert shared["stats"]["optimizer_steps"] == STEPS
    assert shared["stats"]["restored_total_bytes"] > 0
