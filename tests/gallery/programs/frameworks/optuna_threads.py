"""A study whose trials run in two threads. Needs: optuna."""

import optuna
import torch
from torch import nn

optuna.logging.set_verbosity(optuna.logging.ERROR)
torch.set_num_threads(1)


def objective(trial):
    width = (128, 256, 384, 512)[trial.number]
    generator = torch.Generator().manual_seed(trial.number)
    model = nn.Sequential(nn.Linear(32, width), nn.ReLU(), nn.Linear(width, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(20):
        optimizer.zero_grad()
        loss = (model(torch.randn(64, 32, generator=generator)) - 1).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()


study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0))
study.optimize(objective, n_trials=4, n_jobs=2)
for trial in sorted(study.trials, key=lambda trial: trial.number):
    print(trial.number, trial.value.hex())
