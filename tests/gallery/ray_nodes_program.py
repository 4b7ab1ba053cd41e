"""A run of Ray Train with a rank on each node, which goes on from its checkpoint after a failure.

    python -m tests.gallery.ray_nodes_program ADDRESS NAME STEPS SLOW [HOOK]

It pauses in each step while the file SLOW is there. HOOK is for `worker_process_setup_hook`;
without one the run is on stock torch. It prints the last loss and a digest of the parameters.
"""

import hashlib
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.update(RAY_DEDUP_LOGS="0")

import ray
import torch
from ray import train
from ray.train.torch import TorchTrainer, prepare_model
from torch import nn

STEPS_OF_A_CHECKPOINT = 40
PAUSE_SECONDS = 0.1


def train_rank(config):
    """Trains one rank; nothing in here knows of gpushare."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = prepare_model(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)))
    optimizer = torch.optim.Adam(model.parameters())
    data = torch.Generator().manual_seed(train.get_context().get_world_rank())
    first = 0
    if (checkpoint := train.get_checkpoint()) is not None:
        with checkpoint.as_directory() as folder:
            saved = torch.load(Path(folder) / "state.pt")
        model.module.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"]
        for _ in range(first):
            torch.randn(64, 256, generator=data)
    for step in range(first, config["steps"]):
        x = torch.randn(64, 256, generator=data)
        optimizer.zero_grad()
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        if Path(config["slow"]).exists():
            time.sleep(PAUSE_SECONDS)
        if (step + 1) % STEPS_OF_A_CHECKPOINT == 0:
            report(model, optimizer, step + 1, loss.item())


def report(model, optimizer, step, loss):
    """All ranks report, and the first one's checkpoint counts."""
    with tempfile.TemporaryDirectory() as folder:
        is_first = train.get_context().get_world_rank() == 0
        if is_first:
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "step": step}, Path(folder) / "state.pt")
        checkpoint = train.Checkpoint.from_directory(folder) if is_first else None
        train.report({"loss": loss, "step": step}, checkpoint=checkpoint)


def main():
    """Runs it, and prints what it has computed."""
    address, name, steps, slow, *hook = sys.argv[1:]
    env = (
        {"worker_process_setup_hook": hook[0]} if hook else {"env_vars": {"GPUSHARE_DISABLE": "1"}}
    )
    ray.init(address, runtime_env=env, logging_level=logging.ERROR, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        result = TorchTrainer(
            train_rank,
            train_loop_config={"steps": int(steps), "slow": slow},
            scaling_config=train.ScalingConfig(num_workers=2, placement_strategy="STRICT_SPREAD"),
            run_config=train.RunConfig(
                name=name, storage_path=folder, failure_config=train.FailureConfig(max_failures=3)
            ),
        ).fit()
        with result.checkpoint.as_directory() as saved:
            parameters = torch.load(Path(saved) / "state.pt")["model"]
    ray.shutdown()
    digest = hashlib.sha256(b"".join(each.numpy().tobytes() for each in parameters.values()))
    print(result.metrics["step"], result.metrics["loss"].hex(), digest.hexdigest())


if __name__ == "__main__":
    main()
