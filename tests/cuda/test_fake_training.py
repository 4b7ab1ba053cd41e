"""Models train on the fake device bit for bit as on the CPU."""

from __future__ import annotations

import pytest

from tests.cuda import child, fake

MODELS = ["mlp", "transformer", "conv"]
OPTIMIZERS = ["sgd", "adam"]


def _model_and_data(name):
    import torch
    from torch import nn

    if name == "mlp":
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
        return model, torch.randn(32, 64), torch.randn(32, 10), nn.MSELoss()
    if name == "conv":
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(512, 10),
        )
        inputs, targets = torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,))
        return model, inputs, targets, nn.CrossEntropyLoss()
    model = nn.Sequential(
        nn.Embedding(50, 32),
        nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True),
        nn.Flatten(),
        nn.Linear(12 * 32, 50),
    )
    return model, torch.randint(0, 50, (4, 12)), torch.randint(0, 50, (4,)), nn.CrossEntropyLoss()


def _train(device, model_name, optimizer_name, foreach):
    import torch

    torch.manual_seed(0)
    model, inputs, targets, loss_function = _model_and_data(model_name)
    model, inputs, targets = model.to(device), inputs.to(device), targets.to(device)
    if optimizer_name == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=foreach)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, foreach=foreach)
    torch.manual_seed(1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = loss_function(model(inputs), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses, [value.cpu() for value in model.state_dict().values()]


def trains_on_both(parent):
    import torch

    equal = {}
    for model in MODELS:
        for optimizer in OPTIMIZERS:
            for foreach in (False, True):
                losses, values = _train("cpu", model, optimizer, foreach)
                cuda_losses, cuda_values = _train("cuda", model, optimizer, foreach)
                equal[f"{model} {optimizer} {foreach}"] = (
                    losses == cuda_losses
                    and losses[0] != losses[-1]
                    and all(map(torch.equal, values, cuda_values))
                )
    return [equal, fake.violations()]


@pytest.mark.parametrize("late", [False, True])
def test_training_is_equal_to_the_cpus_bit_for_bit(late):
    equal, violations = child.run(trains_on_both, late=late)
    assert len(equal) == 12
    assert all(equal.values()), equal
    assert violations == []
