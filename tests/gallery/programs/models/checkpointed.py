"""Activations that are computed again in the backward, in torch's three ways."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.Tanh()) for _ in range(6)])
optimizer = torch.optim.Adam(model.parameters())
for step in range(18):
    x = torch.randn(64, 256, requires_grad=True)
    if step % 3 == 0:
        out = checkpoint(model, x, use_reentrant=True)
    elif step % 3 == 1:
        out = checkpoint(model, x, use_reentrant=False)
    else:
        out = checkpoint_sequential(model, 3, x, use_reentrant=True)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex(), x.grad.sum().item().hex())
