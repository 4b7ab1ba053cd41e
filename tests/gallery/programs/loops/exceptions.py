"""Catches an error in the middle of an iteration and goes on."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 4))
optimizer = torch.optim.Adam(model.parameters())
for step in range(24):
    width = 63 if step % 6 == 5 else 64
    try:
        optimizer.zero_grad()
        loss = model(torch.randn(32, width)).square().mean()
        if step % 8 == 3:
            raise ValueError("a bad batch")
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())
    except (RuntimeError, ValueError) as error:
        print(step, type(error).__name__)
