"""bfloat16 where autocast chooses it, and a GradScaler that does nothing on a CPU."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(128, 512), nn.LayerNorm(512), nn.GELU(), nn.Linear(512, 16))
optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
scaler = torch.amp.GradScaler("cpu", enabled=False)
for step in range(20):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(64, 128)).float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
