"""The two lines that make a training script a job: import, register.

Start it two or three times at once, in as many terminals, and look at `gpushare status`.
"""

import torch
from torch import nn

import gpushare

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

gpushare.register(model, optimizer, name="minimal")

inputs = torch.randn(4096, 512)
targets = inputs.roll(1, dims=1)
for step in range(300):
    batch = torch.randint(len(inputs), (256,))
    loss = nn.functional.mse_loss(model(inputs[batch]), targets[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # a boundary: here another job may take its turn
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
