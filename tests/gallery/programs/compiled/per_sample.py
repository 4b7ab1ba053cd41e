"""Gradients of each sample by vmap, as for differential privacy."""

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def loss_of(parameters, x, y):
    out = functional_call(model, parameters, (x[None],))
    return nn.functional.cross_entropy(out, y[None])


for step in range(12):
    x, y = torch.randn(32, 64), torch.randint(4, (32,))
    parameters = dict(model.named_parameters())
    gradients = vmap(grad(loss_of), in_dims=(None, 0, 0))(parameters, x, y)
    for name, parameter in parameters.items():
        norms = gradients[name].flatten(1).norm(dim=1)
        scale = (1 / norms).clamp(max=1).reshape(-1, *[1] * parameter.dim())
        parameter.grad = (gradients[name] * scale).mean(0)
    optimizer.step()
    print(model(x).sum().item().hex())
