"""Forks a child that evaluates the model it has got, while the parent trains on."""

import os

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.Adam(model.parameters())
for step in range(20):
    optimizer.zero_grad()
    loss = model(torch.ones(16, 64)).square().mean()
    loss.backward()
    optimizer.step()
    if step % 8 == 7:
        child = os.fork()
        if child == 0:
            with torch.no_grad():
                os.write(1, f"child {model(torch.ones(1, 64)).item().hex()}\n".encode())
            os._exit(0)
        os.waitpid(child, 0)
    os.write(1, f"{loss.item().hex()}\n".encode())
