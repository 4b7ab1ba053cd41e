"""An LSTM whose state is carried over batches, saved whole at the end."""

import torch
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(200, 128)
        self.lstm = nn.LSTM(128, 256, 2, dropout=0.1)
        self.head = nn.Linear(256, 200)

    def forward(self, tokens, state):
        out, state = self.lstm(self.embedding(tokens), state)
        return self.head(out), state


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
state = (torch.zeros(2, 16, 256), torch.zeros(2, 16, 256))
text = torch.randint(200, (12 * 20 + 1, 16))
for step in range(12):
    state = tuple(each.detach() for each in state)
    part = text[20 * step : 20 * step + 21]
    out, state = model(part[:-1], state)
    loss = nn.functional.cross_entropy(out.reshape(-1, 200), part[1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    print(loss.item().hex())
torch.save(model, "model.pt")
