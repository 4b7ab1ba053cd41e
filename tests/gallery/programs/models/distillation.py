"""A large model that only evaluates teaches a small one."""

import torch
from torch import nn

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 10)).eval()
student = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(student.parameters())
for step in range(25):
    x = torch.randn(128, 64)
    with torch.no_grad():
        wanted = teacher(x).softmax(1)
    loss = nn.functional.kl_div(student(x).log_softmax(1), wanted, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
