"""A thread receives batches from a socket, into memory that is reused."""

import socket
import threading

import torch
from torch import nn

torch.manual_seed(0)
SIZE = 64 * 256 * 4
here, there = socket.socketpair()


def send():
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        there.sendall(torch.randn(64, 256, generator=generator).numpy().tobytes())
    there.close()


threading.Thread(target=send).start()
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1))
optimizer = torch.optim.Adam(model.parameters())
batch = torch.empty(64, 256)
view = memoryview(batch.numpy().reshape(-1).view("uint8"))
for _ in range(20):
    got = 0
    while got < SIZE:
        got += here.recv_into(view[got:])
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
