"""Inductor's own kernels, which a C++ compiler makes."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 8))
fast = torch.compile(model)
optimizer = torch.optim.Adam(model.parameters())
for step in range(8):
    optimizer.zero_grad()
    loss = fast(torch.randn(32, 64)).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
