"""Accelerate: accumulation, clipping, save_state and load_state. Needs: accelerate."""

import shutil

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 4))
optimizer = torch.optim.Adam(model.parameters())
data = TensorDataset(torch.randn(256, 64), torch.randint(4, (256,)))
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=32))
for epoch in range(3):
    if epoch == 1:
        accelerator.save_state("state")
    if epoch == 2:
        accelerator.load_state("state")
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        print(epoch, loss.item().hex())
shutil.rmtree("state")
torch.save(accelerator.unwrap_model(model).state_dict(), "weights.pt")
