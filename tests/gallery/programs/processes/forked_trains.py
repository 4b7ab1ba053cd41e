"""Forks amid training. Both go on training what they have, and the child forks once more."""

import os
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128))
optimizer = torch.optim.Adam(model.parameters())


def train(steps, scale):
    for _ in range(steps):
        x = torch.randn(32, 128) * scale
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item().hex()


def leave(name, exit_code):
    torch.save([model.state_dict(), optimizer.state_dict()], f"{name}.pt")
    os._exit(exit_code)


os.write(1, f"{train(6, 1)}\n".encode())
child = os.fork()
if child == 0:
    losses = [train(6, 2)]
    grandchild = os.fork()
    if grandchild == 0:
        train(6, 3)
        leave("grandchild", 5)
    losses.append(train(6, 1))
    Path("losses").write_text(f"{losses} {os.waitpid(grandchild, 0)[1]}")
    leave("child", 4)
os.write(1, f"{train(18, 1)} {os.waitpid(child, 0)[1]}\n".encode())
torch.save(model.state_dict(), "parent.pt")
