"""A sweep over a pool of the default kind: its workers are forked after the parent has trained."""

import multiprocessing

import torch
from torch import nn

torch.set_num_threads(1)
data = torch.arange(64 * 64.0).reshape(64, 64) / 4096


def train(width):
    torch.manual_seed(width)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 64))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(15):
        loss = (model(data) - data).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), f"{width}.pt")
    return width, loss.item().hex()


if __name__ == "__main__":
    print(*train(32))
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=2) as pool:
        for result in pool.imap(train, (64, 256, 512, 600)):
            print(*result)
    print(*train(48))
