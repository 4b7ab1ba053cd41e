"""Ray Tune: each trial is a job that takes turns on the device. Needs: ray.

    gpushare run --group sweep -- python examples/integrations/ray_tune.py

Ray starts its workers with the environment of this program, so they are under gpushare too. On a
GPU a trial asks Ray for a part of it, as {"gpu": 0.5}: Ray counts parts, and gpushare shares them.
"""

import logging
import os
import tempfile

os.environ.update(
    RAY_AIR_NEW_OUTPUT="0", RAY_DEDUP_LOGS="0", TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1"
)

import ray
import torch
from ray import tune
from torch import nn


def train(config):
    """Trains one model; nothing in here knows of gpushare."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    width = config["width"]
    model = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, 256))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(20):
        x = torch.randn(64, 256)
        optimizer.zero_grad()
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
    tune.report({"loss": loss.item()})


if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        tuner = tune.Tuner(
            tune.with_resources(train, {"cpu": 1}),
            param_space={"width": tune.grid_search([512, 1024, 1536, 2048])},
            run_config=tune.RunConfig(storage_path=folder, verbose=0),
        )
        results = tuner.fit()
    ray.shutdown()
    for width, loss in sorted((each.config["width"], each.metrics["loss"]) for each in results):
        print(width, loss.hex())
