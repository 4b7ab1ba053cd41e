"""MAML: gradients of gradients, with parameters that are passed to the model."""

import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(1, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(10):
    total = 0.0
    for task in range(4):
        phase = torch.rand(1)
        x = torch.rand(20, 1) * 10 - 5
        y = torch.sin(x + phase)
        inner = dict(model.named_parameters())
        loss = (functional_call(model, inner, x) - y).square().mean()
        gradients = torch.autograd.grad(loss, list(inner.values()), create_graph=True)
        inner = {name: value - 0.01 * g for (name, value), g in zip(inner.items(), gradients)}
        total = total + (functional_call(model, inner, x) - y).square().mean()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    print(total.item().hex())
