"""Ctrl-C in the middle of training: what was learnt is saved."""

import os
import signal

import torch
from torch import nn

torch.manual_seed(0)
signal.signal(signal.SIGINT, signal.default_int_handler)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters())
step = 0
try:
    while True:
        optimizer.zero_grad()
        loss = model(torch.randn(32, 64)).square().mean()
        loss.backward()
        optimizer.step()
        step += 1
        if step == 15:
            os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("stopped after", step, loss.item().hex())
    torch.save(model.state_dict(), "weights.pt")
