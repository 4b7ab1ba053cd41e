"""Sharpness-aware steps: two forwards and backwards an iteration, weights changed between them."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 768), nn.ReLU(), nn.Linear(768, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(20):
    x, y = torch.randn(64, 64), torch.randint(10, (64,))
    nn.functional.cross_entropy(model(x), y).backward()
    with torch.no_grad():
        moves = [
            0.05 * parameter.grad / (parameter.grad.norm() + 1e-9)
            for parameter in model.parameters()
        ]
        for parameter, move in zip(model.parameters(), moves):
            parameter += move
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        for parameter, move in zip(model.parameters(), moves):
            parameter -= move
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
