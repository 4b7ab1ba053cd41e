"""Two trainers in a budget that only one of them fits into at a time.

    python examples/two_trainers.py

starts itself twice under `gpushare run`, which needs no change in a script: `train` below knows
nothing of gpushare. Each prints the same losses as when it runs alone.
"""

import os
import subprocess
import sys
import tempfile


def train(seed: int) -> None:
    """An ordinary training loop."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    layers = [layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for step in range(60):
        inputs = torch.randn(1024, 1024)
        loss = nn.functional.mse_loss(model(inputs), inputs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            print(f"trainer {seed}, step {step + 1}: loss {loss.item():.6f}", flush=True)


def main() -> None:
    """Starts two trainers on a coordinator of their own."""
    gpushare = [sys.executable, "-m", "gpushare"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "GPUSHARE_SOCKET": f"{folder}/sock"}
        start = [*gpushare, "coordinator", "start", "--capacity", "128MiB"]
        subprocess.run(start, env=environment, check=True)
        trainers = []
        for seed in ("1", "2"):
            command = [*gpushare, "run", "--name", f"trainer-{seed}", "--"]
            command += [sys.executable, __file__, seed]
            trainers.append(subprocess.Popen(command, env=environment))
        for trainer in trainers:
            trainer.wait()
        subprocess.run([*gpushare, "coordinator", "stop", "--force"], env=environment, check=True)
        sys.exit(max(trainer.returncode for trainer in trainers))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        train(int(sys.argv[1]))
    else:
        main()
