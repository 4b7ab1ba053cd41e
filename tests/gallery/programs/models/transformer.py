"""A transformer's encoder over random tokens."""

import torch
from torch import nn

torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
model = nn.Sequential(nn.Embedding(500, 128), nn.TransformerEncoder(layer, 2), nn.Linear(128, 500))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    tokens = torch.randint(500, (8, 33))
    out = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(out.reshape(-1, 500), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
