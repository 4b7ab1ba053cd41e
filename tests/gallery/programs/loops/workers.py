"""A DataLoader with two worker processes, and an evaluation after each epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(512, 64), torch.randint(4, (512,)))
    train = DataLoader(data, batch_size=64, shuffle=True, num_workers=2)
    test = DataLoader(data, batch_size=128)
    model = nn.Sequential(nn.Linear(64, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Linear(512, 4))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        model.train()
        for x, y in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in test)
        print(epoch, right)
