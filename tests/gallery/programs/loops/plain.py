"""An MLP with Adam, and a loss printed now and then."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.Linear(1024, 10))
optimizer = torch.optim.Adam(model.parameters())
for step in range(20):
    x, y = torch.randn(64, 256), torch.randint(10, (64,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(step, loss.item().hex())
