"""LBFGS, which calls the model several times a step."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-1, 1, 200).reshape(-1, 1)
y = torch.sin(5 * x)
model = nn.Sequential(
    nn.Linear(1, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)
)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=8)


def closure():
    optimizer.zero_grad()
    loss = (model(x) - y).square().mean()
    loss.backward()
    return loss


for _ in range(6):
    print(optimizer.step(closure).item().hex())
