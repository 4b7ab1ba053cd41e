"""A sweep by processes that share one Optuna study. Needs: optuna.

    python examples/integrations/optuna_workers.py

starts two workers under `gpushare run --group sweep`, which take turns on the device. Each trial
gives what it gives alone. Threads of one process (`n_jobs`) cannot take turns.
"""

import subprocess
import sys
import tempfile

import optuna
import torch
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from torch import nn

optuna.logging.set_verbosity(optuna.logging.ERROR)
WIDTHS = (2048, 4096, 6144, 8192)


def objective(trial):
    """Trains one model; nothing in here knows of gpushare."""
    width = trial.suggest_categorical("width", WIDTHS)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, 256))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(20):
        x = torch.randn(64, 256)
        optimizer.zero_grad()
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def study(path):
    """The study in this file."""
    return optuna.create_study(
        storage=JournalStorage(JournalFileBackend(path)), study_name="sweep", load_if_exists=True
    )


def work(path):
    """One worker: takes trials until none is left."""
    while any(each.state == optuna.trial.TrialState.WAITING for each in study(path).trials):
        study(path).optimize(objective, n_trials=1)


def main():
    """Puts all trials into a study, and starts the workers."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/study.log"
        for width in WIDTHS:
            study(path).enqueue_trial({"width": width})
        command = [sys.executable, "-m", "gpushare", "run", "--group", "sweep", "--"]
        command += [sys.executable, __file__, path]
        workers = [subprocess.Popen(command) for _ in range(2)]
        failed = [each.wait() for each in workers]
        # A worker may find no trial waiting any more, and repeat one.
        for width, loss in sorted({(t.params["width"], t.value) for t in study(path).trials}):
            print(width, loss.hex())
        sys.exit(max(failed))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[1])
    else:
        main()
