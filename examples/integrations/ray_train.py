"""Ray Train: the ranks of a run are a gang, which takes its turns together. Needs: ray.

    gpushare run -- python examples/integrations/ray_train.py

Ray starts its workers with the environment of this program, so they are under gpushare too. On GPUs
say use_gpu=True: each rank asks Ray for a whole GPU, which gpushare shares with other programs.
"""

import logging
import os
import tempfile
from pathlib import Path

os.environ.update(RAY_DEDUP_LOGS="0")

import ray
import torch
from ray import train
from ray.train.torch import TorchTrainer, prepare_model
from torch import nn


def train_rank(config):
    """Trains one rank; nothing in here knows of gpushare."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = prepare_model(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)))
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.Generator().manual_seed(train.get_context().get_world_rank())
    for _ in range(config["steps"]):
        x = torch.randn(64, 256, generator=data)
        optimizer.zero_grad()
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.module.state_dict(), Path(folder) / "model.pt")
        saved = train.Checkpoint.from_directory(folder)
        is_first = train.get_context().get_world_rank() == 0
        train.report({"loss": loss.item()}, checkpoint=saved if is_first else None)


if __name__ == "__main__":
    ray.init(num_cpus=3, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        result = TorchTrainer(
            train_rank,
            train_loop_config={"steps": 60},
            scaling_config=train.ScalingConfig(num_workers=2),
            run_config=train.RunConfig(name=os.environ.get("RUN"), storage_path=folder),
        ).fit()
        with result.checkpoint.as_directory() as saved:
            parameters = torch.load(Path(saved) / "model.pt")
    ray.shutdown()
    print(result.metrics["loss"].hex())
    for name, values in parameters.items():
        print(name, values.double().sum().item().hex(), values.double().square().sum().item().hex())
