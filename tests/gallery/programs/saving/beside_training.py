"""A thread writes checkpoints, from copies, while training goes on."""

import copy
import threading

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256))
optimizer = torch.optim.Adam(model.parameters())
writer = None
for step in range(24):
    optimizer.zero_grad()
    loss = (model(torch.randn(64, 256)) - 1).square().mean()
    loss.backward()
    optimizer.step()
    if step % 8 == 7:
        if writer:
            writer.join()
        state = copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
        writer = threading.Thread(target=torch.save, args=(state, f"step{step}.pt"))
        writer.start()
    print(loss.item().hex())
writer.join()
