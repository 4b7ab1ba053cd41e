"""Bounds its address space, its files and its stack, as programs do that fear to fill a machine."""

import resource

import torch
from torch import nn

GIB = 1 << 30
resource.setrlimit(resource.RLIMIT_AS, (12 * GIB, resource.RLIM_INFINITY))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20))
torch.manual_seed(0)
model = nn.Linear(2000, 500)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(20):
    loss = model(torch.randn(32, 2000)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item().hex(), resource.getrlimit(resource.RLIMIT_AS)[0] // GIB)
try:
    torch.empty(13 * GIB, dtype=torch.uint8)
except RuntimeError:
    print("more than the limit")
try:
    bytearray(13 * GIB)
except MemoryError:
    print("more than the limit")
_, hard = resource.prlimit(0, resource.RLIMIT_AS, (20 * GIB, 20 * GIB))
print(hard, [limit // GIB for limit in resource.getrlimit(resource.RLIMIT_AS)])
