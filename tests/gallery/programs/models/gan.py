"""Two models and two optimizers that train against each other."""

import torch
from torch import nn

torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 64))
judge = nn.Sequential(nn.Linear(64, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1))
makers = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
judges = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
loss_of = nn.BCEWithLogitsLoss()
for step in range(20):
    real = torch.randn(64, 64) * 0.5 + 1
    fake = maker(torch.randn(64, 32))
    judges.zero_grad()
    judged = loss_of(judge(real), torch.ones(64, 1)) + loss_of(
        judge(fake.detach()), torch.zeros(64, 1)
    )
    judged.backward()
    judges.step()
    makers.zero_grad()
    made = loss_of(judge(fake), torch.ones(64, 1))
    made.backward()
    makers.step()
    print(judged.item().hex(), made.item().hex())
