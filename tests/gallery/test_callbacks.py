"""The callbacks for trainers do what `gpushare run` alone does not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import ROOT, job_environment
from tests.support import forked

pytestmark = pytest.mark.skipif(
    os.environ.get("GALLERY") != "all", reason="the frameworks start slowly: make gallery runs it"
)

Coordinator = Callable[..., dict[str, str]]

# Its steps call the encoder, then the decoder. The decoder notes whether an iteration runs.
LIGHTNING = """
import json, logging, os, warnings
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
if os.environ.get("GPUSHARE_RUN"):
    from gpushare import auto
    auto.enable()
import lightning as L, torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn
import gpushare
from gpushare import _native
from gpushare._coordinator.client import CoordinatorClient
from gpushare.integrations.lightning import GpushareCallback

inside = []
logged = set()

class Logger(CSVLogger):
    def log_metrics(self, metrics, step=None):
        logged.update(metrics)

class Decoder(nn.Linear):
    def forward(self, x):
        inside.append(_native.load().is_in_iteration())
        return super().forward(x)

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(64, 8), Decoder(8, 64)
    def training_step(self, batch, _):
        return (self.decoder(self.encoder(batch)) - batch).square().mean()
    def validation_step(self, batch, _):
        self.log("loss", self.training_step(batch, 0))
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

loader = torch.utils.data.DataLoader(torch.randn(96, 64), batch_size=16)
trainer = L.Trainer(
    max_epochs=2, accumulate_grad_batches=4, accelerator="cpu", logger=Logger("logs"),
    log_every_n_steps=1, enable_progress_bar=False, enable_model_summary=False,
    enable_checkpointing=False, callbacks={callbacks},
)
trainer.fit(Net(), loader, loader)
path = os.environ["GPUSHARE_SOCKET"]
row = CoordinatorClient([path]).status()["devices"][0]["jobs"][0]
print(json.dumps({{
    "inside": inside, "logged": sorted(logged), "total": row["iterations_total"],
    "iterations": gpushare.current().stats().iterations, "priority": row["priority"],
}}))
"""
NO_ENTRY_POINTS = """
import importlib.metadata
entry_points = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **chosen: (
    () if "callbacks_factory" in chosen.get("group", "") else entry_points(**chosen)
)
"""
"""As where gpushare is on the path and was not installed by pip."""
NUM_FORWARDS = 2 + 2 * (6 + 6)
"""A sanity check of two batches; two epochs of six batches and six validation batches."""
NUM_ITERATIONS = 2 + 2 * (2 + 6)
"""Four batches make one step, and the last two of an epoch another."""

EXCEPTION = """
import json, logging, warnings
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning as L, torch
import gpushare
from gpushare import _native
from gpushare.integrations.lightning import GpushareCallback

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(64, 64)
    def training_step(self, batch, number):
        if number == 2:
            raise ArithmeticError("of the program")
        return self.net(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

loader = torch.utils.data.DataLoader(torch.randn(96, 64), batch_size=16)
trainer = L.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_progress_bar=False,
    enable_model_summary=False, enable_checkpointing=False, callbacks=[GpushareCallback()],
)
try:
    trainer.fit(Net(), loader)
except ArithmeticError as error:
    stats = gpushare.current().stats()
    print(json.dumps({
        "error": str(error), "state": stats.lease_state, "iterations": stats.iterations,
        "inside": _native.load().is_in_iteration(),
    }))
"""

# Draws its data where Lightning asks for them, and changes how many batches make a step.
HOOKS = """
import json, logging, warnings
warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
import lightning as L, torch
from lightning.pytorch.callbacks import GradientAccumulationScheduler
from gpushare.integrations.lightning import GpushareCallback

losses = []

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(64, 64)
    def training_step(self, batch, _):
        loss = self.net(batch).square().mean()
        losses.append(loss.item().hex())
        return loss
    validation_step = training_step
    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.randn(96, 64), batch_size=16)
    val_dataloader = train_dataloader
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

L.seed_everything(0, verbose=False)
trainer = L.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_progress_bar=False,
    enable_model_summary=False, enable_checkpointing=False,
    callbacks=[GradientAccumulationScheduler({{0: 1, 1: 3}}), *{callbacks}],
)
trainer.fit(Net())
print(json.dumps({{"losses": losses}}))
"""

TRANSFORMERS = """
import json, os
os.environ.update(TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE="1", TQDM_DISABLE="1")
import torch
from torch import nn
from transformers import Trainer, TrainingArguments
from gpushare._coordinator.client import CoordinatorClient
from gpushare.integrations.transformers import GpushareCallback

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 1)
    def forward(self, x, labels):
        return {"loss": (self.net(x) - labels).square().mean()}

data = [{"x": torch.randn(8), "labels": torch.randn(1)} for _ in range(32)]
arguments = TrainingArguments(
    output_dir="out", max_steps=6, per_device_train_batch_size=4, save_strategy="no", report_to=[],
    logging_steps=2, disable_tqdm=True, use_cpu=True,
)
callback = GpushareCallback(log_figures=True, priority="opportunistic")
trainer = Trainer(model=Net(), args=arguments, train_dataset=data, callbacks=[callback])
trainer.train()
row = CoordinatorClient([os.environ["GPUSHARE_SOCKET"]]).status()["devices"][0]["jobs"][0]
print(json.dumps({
    "total": row["iterations_total"], "priority": row["priority"],
    "logged": sorted(trainer.state.log_history[0]),
}))
"""


def _run(code: str, env: dict[str, str], folder: Path) -> dict[str, Any]:
    done = forked.run(["-c", code], job_environment(env), cwd=folder, timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def _entry_points(folder: Path) -> str:
    """A folder for PYTHONPATH with this checkout's entry points, as an installation has them."""
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = folder / "checkout-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: checkout\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
            for group, points in project["entry-points"].items()
        )
    )
    return str(folder)


@pytest.mark.parametrize("way", ["no callback", "callback", "entry point", "both"])
def test_lightnings_evaluation_batches_are_iterations(
    coordinator: Coordinator, tmp_path: Path, way: str
) -> None:
    pytest.importorskip("lightning")
    env = job_environment(coordinator())
    settings = 'log_figures=True, priority="opportunistic"'
    has_own = way in {"callback", "both"}
    code = LIGHTNING.format(callbacks=f"[GpushareCallback({settings})]" if has_own else "[]")
    if way != "callback":
        env |= {"GPUSHARE_RUN": "1"}
    if way == "no callback":
        code = NO_ENTRY_POINTS + code
    if way in {"entry point", "both"}:
        env["PYTHONPATH"] = f"{_entry_points(tmp_path)}:{env['PYTHONPATH']}"
    found = _run(code, env, tmp_path)
    if way == "no callback":
        assert False in found["inside"], "then the callback is not needed any more"
        return
    assert found["inside"] == [True] * NUM_FORWARDS
    assert found["iterations"] == NUM_ITERATIONS
    assert found["total"] == 4
    assert found["priority"] == ("opportunistic" if has_own else "normal")
    assert ("gpushare/waited_seconds" in found["logged"]) == has_own


def test_lightning_draws_the_same_random_numbers(coordinator: Coordinator, tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    stock = _run(HOOKS.format(callbacks="[]"), {"GPUSHARE_DISABLE": "1"}, tmp_path)
    assert len(stock["losses"]) == NUM_FORWARDS
    assert _run(HOOKS.format(callbacks="[GpushareCallback()]"), coordinator(), tmp_path) == stock


def test_an_exception_in_a_batch_gives_the_lease_back(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    pytest.importorskip("lightning")
    found = _run(EXCEPTION, coordinator(), tmp_path)
    expected = {"error": "of the program", "state": "kIdle", "iterations": 2, "inside": False}
    assert found == expected


def test_transformers_knows_the_length_and_logs_figures(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    found = _run(TRANSFORMERS, coordinator(), tmp_path)
    assert found["total"] == 6
    assert found["priority"] == "opportunistic"
    assert {"gpushare/waited_seconds", "gpushare/spilled_bytes", "loss"} <= set(found["logged"])
