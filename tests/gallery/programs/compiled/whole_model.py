"""torch.compile of the model, with a backend that needs no compiler."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 8))
fast = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.Adam(model.parameters())
for step in range(15):
    optimizer.zero_grad()
    loss = fast(torch.randn(32, 64)).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
torch.save(model.state_dict(), "weights.pt")
