"""A small residual CNN."""

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return x + self.norm(self.second(self.first(x).relu()))


model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    Block(16),
    nn.MaxPool2d(2),
    Block(16),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
for step in range(8):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(32, 3, 32, 32)), torch.randint(10, (32,)))
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
