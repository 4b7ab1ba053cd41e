"""Tensors that another process fills, by torch.multiprocessing."""

import torch
import torch.multiprocessing as mp
from torch import nn


def make(wanted, made):
    generator = torch.Generator().manual_seed(3)
    while wanted.get():
        made.put(torch.randn(64, 256, generator=generator))


if __name__ == "__main__":
    torch.manual_seed(0)
    context = mp.get_context("spawn")
    wanted, made = context.Queue(), context.Queue()
    maker = context.Process(target=make, args=(wanted, made))
    maker.start()
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(15):
        wanted.put(True)
        optimizer.zero_grad()
        loss = model(made.get()).square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    wanted.put(False)
    maker.join()
