"""DQN: a replay buffer, and a target network that follows the other by copies."""

import copy
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
values = nn.Sequential(
    nn.Linear(8, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4)
)
target = copy.deepcopy(values)
optimizer = torch.optim.Adam(values.parameters(), lr=1e-3)
buffer = []
state = torch.randn(8)
for step in range(60):
    with torch.no_grad():
        action = int(values(state).argmax()) if random.random() > 0.2 else random.randrange(4)
    after = 0.9 * state + 0.3 * torch.randn(8)
    buffer.append((state, action, float(after.sum()), after))
    state = after
    if len(buffer) < 32:
        continue
    states, actions, rewards, afters = zip(*random.sample(buffer, 32))
    with torch.no_grad():
        wanted = torch.tensor(rewards) + 0.9 * target(torch.stack(afters)).max(1).values
    found = values(torch.stack(states)).gather(1, torch.tensor(actions)[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(found, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        target.load_state_dict(values.state_dict())
        print(step, loss.item().hex())
