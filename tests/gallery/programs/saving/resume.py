"""Saves, makes everything anew, loads and goes on."""

import torch
from torch import nn


def make():
    model = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 128))
    optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 4)


torch.manual_seed(0)
model, optimizer, schedule = make()
for part in range(4):
    if part:
        model, optimizer, schedule = make()
        saved = torch.load("last.pt")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["schedule"])
        torch.set_rng_state(saved["random"])
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(torch.randn(64, 128)) - 1).square().mean()
        loss.backward()
        optimizer.step()
        schedule.step()
    print(part, loss.item().hex())
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
            "random": torch.get_rng_state(),
        },
        "last.pt",
    )
