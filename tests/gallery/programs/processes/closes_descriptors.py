"""Closes each descriptor that it does not know amid training, as programs that make daemons do."""

import os

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.Adam(model.parameters())
logs = []
for step in range(30):
    loss = model(torch.randn(64, 256)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())
    if step == 8:
        os.closerange(3, 256)
        # These get the numbers of what was closed: whoever uses such a number writes into them.
        logs = [open(f"{number}.log", "w+b") for number in range(24)]  # noqa: SIM115
    for log in logs:
        log.write(f"{step} {loss.item().hex()}\n".encode())
for log in logs:
    log.close()
torch.save(model.state_dict(), "model.pt")
