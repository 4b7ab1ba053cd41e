"""A thread receives the next batch from a socket and a file while the last one is trained on."""

import queue
import socket
import tempfile
import threading
import time

import torch
from torch import nn

torch.manual_seed(0)
SHAPE = (1024, 256)
SIZE = 1024 * 256 * 4
COUNT = 12

here, there = socket.socketpair()
targets = tempfile.TemporaryFile(buffering=0)
generator = torch.Generator().manual_seed(1)
for _ in range(COUNT):
    targets.write(torch.randn(1024, 1024, generator=generator).numpy().tobytes())
targets.seek(0)


def send():
    for _ in range(COUNT):
        batch = torch.randn(SHAPE, generator=generator).numpy().tobytes()
        for at in range(0, SIZE, SIZE // 64):  # as a network does
            there.sendall(batch[at : at + SIZE // 64])
            time.sleep(0.002)
    there.close()


def receive():
    for _ in range(COUNT):
        batch, target = empty.get()
        into = memoryview(batch.numpy().reshape(-1).view("uint8"))
        got = 0
        while got < SIZE:
            got += here.recv_into(into[got:])
        assert targets.readinto(target.numpy().reshape(-1).view("uint8")) == target.nbytes
        full.put((batch, target))


empty = queue.Queue()
full = queue.Queue()
for _ in range(3):
    empty.put((torch.empty(SHAPE), torch.empty(1024, 1024)))
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024))
optimizer = torch.optim.Adam(model.parameters())
for work in send, receive:
    threading.Thread(target=work).start()
for _ in range(COUNT):
    batch, target = full.get()
    optimizer.zero_grad()
    loss = (model(batch) - target).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
    empty.put((batch, target))
