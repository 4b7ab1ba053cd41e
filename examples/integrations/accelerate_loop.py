"""Accelerate: one line makes the prepared model a job. Needs: accelerate."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gpushare

set_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
model = nn.Sequential(nn.Linear(256, 8192), nn.ReLU(), nn.Linear(8192, 256))
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(TensorDataset(torch.randn(512, 256)), batch_size=32)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

gpushare.register(model, optimizer, priority="opportunistic")

for epoch in range(3):
    for (x,) in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.mse_loss(model(x), x)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        total = sum(nn.functional.mse_loss(model(x), x) for (x,) in loader)
    model.train()
    print(epoch, loss.item().hex(), total.item().hex())
