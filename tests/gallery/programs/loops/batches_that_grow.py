"""Batches of growing size, made before the iteration that uses them."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for size in (16, 64, 256, 1024, 4096, 512):
    batches = [torch.randn(size, 256) for _ in range(4)]
    for batch in batches:
        optimizer.zero_grad(set_to_none=False)
        loss = model(batch).pow(2).mean()
        loss.backward()
        optimizer.step()
    print(size, loss.item().hex())
