"""A policy is trained by the answers of a frozen reward model in a process of its own, asked within each step."""

import torch
import torch.multiprocessing as mp
from torch import nn

torch.set_num_threads(1)


def reward_server(pipe):
    """Answers with the reward of each sample, until None comes."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    reward = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 1)).eval()
    while (sample := pipe.recv()) is not None:
        with torch.no_grad():
            pipe.send(reward(torch.tensor(sample)).tolist())


if __name__ == "__main__":
    here, there = mp.Pipe()
    context = mp.get_context("spawn")
    server = context.Process(target=reward_server, args=(there,))
    server.start()
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(32, 1024), nn.ReLU(), nn.Linear(1024, 64))
    optimizer = torch.optim.Adam(policy.parameters())
    for step in range(30):
        action = policy(torch.randn(128, 32))
        here.send(action.detach().tolist())
        advantage = torch.tensor(here.recv())
        loss = (advantage * action).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex())
    here.send(None)
    server.join()
