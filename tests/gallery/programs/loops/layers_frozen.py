"""Trains a head, then all of it: parameter groups come, requires_grad changes."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 256)), nn.Linear(256, 4)
model = nn.Sequential(body, nn.ReLU(), head)
body.requires_grad_(False)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
for step in range(24):
    if step == 12:
        body.requires_grad_(True)
        optimizer.add_param_group({"params": body.parameters(), "lr": 1e-4})
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(32, 64)), torch.randint(4, (32,)))
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
