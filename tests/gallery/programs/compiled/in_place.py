"""model.compile(), and an evaluation with the same model."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, 8))
model.compile(backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(15):
    model.train()
    optimizer.zero_grad()
    loss = model(torch.randn(32, 64)).square().mean()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        print(loss.item().hex(), model(torch.ones(1, 64)).sum().item().hex())
