"""A sweep over worker processes, each of which trains a model of its own."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
from torch import nn


def train(width):
    torch.set_num_threads(1)
    torch.manual_seed(width)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(15):
        optimizer.zero_grad()
        loss = (model(torch.randn(64, 64)) - 1).square().mean()
        loss.backward()
        optimizer.step()
    return width, loss.item().hex()


if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for result in pool.map(train, (256, 512, 768, 1024)):
            print(*result)
