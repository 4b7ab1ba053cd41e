"""A job of test_two_jobs.py: trains a little, or holds its lease, or waits for one."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
import time

import torch

import gpushare

BALLAST_BYTES = 16 << 20
STEPS = 30


def train(seed: int, *, is_alone: bool) -> dict[str, object]:
    """Digest of all losses and parameters, and what the job did."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
    ballast = torch.nn.Parameter(torch.randn(BALLAST_BYTES // 4))
    model.register_parameter("ballast", ballast)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if not is_alone:
        gpushare.register(model, optimizer)
        say_ready_and_wait()
    digest = hashlib.sha256()
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(torch.randn(32, 256)).square().mean() + ballast.mean()
        loss.backward()
        optimizer.step()
        digest.update(loss.detach().numpy().tobytes())
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    stats = {} if is_alone else vars(gpushare.stats.job_stats())
    return {"digest": digest.hexdigest(), "stats": stats}


def hold() -> dict[str, object]:
    """Stays inside an iteration until stdin says otherwise; at work, so that it is not idle."""
    job = gpushare.register(torch.nn.Linear(1, 1))
    done = threading.Event()
    with job.iteration():
        threading.Thread(target=lambda: (say_ready_and_wait(), done.set())).start()
        while not done.is_set():
            torch.ones(1000).sum()
    return {"iterations": job.stats().iterations}


def wait() -> dict[str, object]:
    """Waits in the gate until Ctrl-C, which comes when the job is seen to wait."""
    job = gpushare.register(torch.nn.Linear(1, 1))

    def interrupt() -> None:
        while job.stats().lease_state != "kWanted":
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    is_interrupted = False
    try:
        with job.iteration():
            pass
    except KeyboardInterrupt:
        is_interrupted = True
    return {"is_interrupted": is_interrupted, "lease_state": job.stats().lease_state}


def say_ready_and_wait() -> None:
    """Until a line comes."""
    print("ready", flush=True)
    sys.stdin.readline()


def main() -> None:
    """Does what the arguments say."""
    torch.set_num_threads(1)
    what, *rest = sys.argv[1:]
    if what == "train":
        result = train(int(rest[0]), is_alone=False)
    else:
        result = {"hold": hold, "wait": wait}[what]()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
