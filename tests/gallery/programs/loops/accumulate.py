"""Gradients of four batches a step, and a schedule of learning rates."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(128, 1024), nn.GELU(), nn.Linear(1024, 128))
optimizer = torch.optim.AdamW(model.parameters())
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for step in range(40):
    loss = (model(torch.randn(32, 128)) ** 2).mean() / 4
    loss.backward()
    if step % 4 == 3:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        print(loss.item().hex(), schedule.get_last_lr())
