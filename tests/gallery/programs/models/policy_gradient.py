"""REINFORCE: many evaluations of the policy for each step that trains it."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 256), nn.Tanh(), nn.Linear(256, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for episode in range(12):
    state, logs, rewards = torch.randn(4), [], []
    for _ in range(15):
        chosen = torch.distributions.Categorical(logits=policy(state))
        action = chosen.sample()
        logs.append(chosen.log_prob(action))
        state = 0.9 * state + 0.1 * torch.randn(4) + 0.1 * (action - 0.5)
        rewards.append(-state.abs().sum().item())
    gains = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(logs) * (gains - gains.mean())).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, loss.item().hex())
