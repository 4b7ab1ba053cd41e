"""Reads and writes parameters by numpy, lists and files between iterations."""

import numpy
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 4))
optimizer = torch.optim.Adam(model.parameters())
seen = []
for step in range(20):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 128)).square().mean()
    loss.backward()
    optimizer.step()
    weights = model[0].weight.detach().numpy()
    seen.append(weights.mean(axis=0).tolist())
    if step % 5 == 4:
        weights *= 0.99
        weights.tofile(f"weights{step}.bin")
        model[2].bias.data = torch.from_numpy(
            numpy.fromfile(f"weights{step}.bin", "float32")[:4].copy()
        )
    print(loss.item().hex())
print(numpy.array(seen).sum().hex())
