"""Two views through one encoder, and a momentum encoder that is never trained."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(96, 1024), nn.ReLU(), nn.Linear(1024, 128))
slow = copy.deepcopy(encoder).requires_grad_(False)
optimizer = torch.optim.Adam(encoder.parameters())
for step in range(20):
    x = torch.randn(64, 96)
    a = nn.functional.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=1)
    b = nn.functional.normalize(encoder(x + 0.1 * torch.randn_like(x)), dim=1)
    with torch.no_grad():
        keys = nn.functional.normalize(slow(x), dim=1)
    loss = nn.functional.cross_entropy(a @ b.T / 0.1, torch.arange(64))
    loss = loss + nn.functional.cross_entropy(a @ keys.T / 0.1, torch.arange(64))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(slow.parameters(), encoder.parameters()):
            kept.lerp_(new, 0.05)
    print(loss.item().hex())
