"""Evaluates after each epoch, keeps the best weights in memory and goes back to them."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Dropout(0.2), nn.Linear(1024, 1))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
x, y = torch.randn(400, 64), torch.randn(400, 1)
best, best_loss, waited = None, float("inf"), 0
for epoch in range(12):
    model.train()
    for part in range(0, 300, 50):
        optimizer.zero_grad()
        (model(x[part : part + 50]) - y[part : part + 50]).square().mean().backward()
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        loss = (model(x[300:]) - y[300:]).square().mean().item()
    print(epoch, loss.hex())
    if loss < best_loss:
        best, best_loss, waited = copy.deepcopy(model.state_dict()), loss, 0
    elif (waited := waited + 1) == 2:
        break
model.load_state_dict(best)
with torch.no_grad():
    print((model(x[300:]) - y[300:]).square().mean().item() == best_loss)
