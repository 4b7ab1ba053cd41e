"""Answers requests without gradients, one at a time, with pauses between them."""

import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 16)).eval()
for request in range(30):
    with torch.inference_mode():
        answer = model(torch.randn(1, 256)).softmax(1)
    print(request, answer.argmax().item(), answer.max().item().hex())
    time.sleep(0.02)
