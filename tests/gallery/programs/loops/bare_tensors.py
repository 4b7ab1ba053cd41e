"""Trains tensors of its own, without any module, as fits of a few parameters and images do."""

import torch

torch.manual_seed(0)
weights = [
    (torch.randn(rows, columns) / rows**0.5).requires_grad_()
    for rows, columns in ((64, 1024), (1024, 1024), (1024, 1))
]
optimizer = torch.optim.Adam(weights)
for step in range(30):
    x = torch.randn(64, 64)
    hidden = x
    for weight in weights[:-1]:
        hidden = (hidden @ weight).tanh()
    loss = (hidden @ weights[-1] - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex())
torch.save(weights, "weights.pt")
