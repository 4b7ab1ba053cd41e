"""Two threads train a model each, as Optuna's n_jobs=2 does."""

import threading

import torch
from torch import nn

torch.set_num_threads(1)
losses = {}


def train(number):
    generator = torch.Generator().manual_seed(number)
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.05)
    optimizer = torch.optim.Adam(model.parameters())
    seen = losses[number] = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = model(torch.randn(64, 64, generator=generator)).square().mean()
        loss.backward()
        optimizer.step()
        seen.append(loss.item().hex())


threads = [threading.Thread(target=train, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for number in range(2):
    print(number, *losses[number])
