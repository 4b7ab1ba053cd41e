"""Scripts, traces and exports the model at the end, and runs what it has saved."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 16))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(12):
    optimizer.zero_grad()
    model(torch.randn(32, 64)).square().mean().backward()
    optimizer.step()
model.eval()
x = torch.ones(2, 64)
torch.jit.script(model).save("script.pt")
traced = torch.jit.trace(model, x)
exported = torch.export.export(model, (x,))
for again in (torch.jit.load("script.pt"), traced, exported.module()):
    print(torch.equal(again(x), model(x)), model(x).sum().item().hex())
torch.save(model.state_dict(), "weights.pt")
