"""A ScriptModule that trains."""

import torch
from torch import nn

torch.manual_seed(0)
model = torch.jit.script(nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 8)))
optimizer = torch.optim.Adam(model.parameters())
for step in range(15):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 64)).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
model.save("model.pt")
