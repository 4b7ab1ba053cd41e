"""One compiled function that does a whole training step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 8))
optimizer = torch.optim.Adam(model.parameters())


@torch.compile(backend="eager")
def step(x):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


for _ in range(15):
    print(step(torch.randn(32, 64)).item().hex())
