"""Models of growing width, one after the other; the best is saved."""

import torch
from torch import nn

best = (float("inf"), None)
for width in (512, 1024, 1536, 2048):
    torch.manual_seed(width)
    model = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, 256))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(8):
        x = torch.randn(64, 256)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(width, loss.item().hex())
    if loss.item() < best[0]:
        best = (loss.item(), {k: v.clone() for k, v in model.state_dict().items()})
torch.save(best, "best.pt")
