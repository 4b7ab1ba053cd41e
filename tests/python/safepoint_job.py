"""A job of test_safepoints.py: trains, or wants the device at once.

In the middle of one iteration the one that trains says "inside", and goes on once its lease is
wanted back: so the other one has come while that iteration is under way.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
import time
from typing import Any

import torch

import gpushare

WIDTH = 64
ROWS = 16384
"""4 MiB of activations a block, so that lanes have use for them."""
STEPS = 6
SLOW_STEP = 4
"""The iteration in which the other job comes: of both enough is known then."""


def say(line: str) -> None:
    """Tells the test."""
    print(line, flush=True)


def stats() -> dict[str, Any]:
    """What this process's job did."""
    return vars(gpushare.stats.job_stats())


class Middle(torch.nn.Module):
    """In the middle of one iteration: waits until the lease is wanted back."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0
        self.where = os.environ.get("WHERE", "")
        self.register_full_backward_pre_hook(lambda *_: self.wait("backward"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Changes nothing."""
        self.wait("forward")
        return x * 1.0

    def wait(self, where: str) -> None:
        """At the step that the test waits for, in its part of it."""
        if self.step != SLOW_STEP or self.where != where:
            return
        say("inside")
        while state() != "closing":
            time.sleep(0.001)
        if os.environ.get("THEN") == "interrupt":
            threading.Thread(target=interrupt_inside).start()


class End(torch.nn.Module):
    """The end of the forward, which fails once."""

    def __init__(self, middle: Middle) -> None:
        super().__init__()
        self.middle = [middle]  # no child of this module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Changes nothing."""
        if self.middle[0].step == SLOW_STEP and os.environ.get("THEN") == "fail":
            raise RuntimeError("as the test wants")
        return x


class Stay(torch.nn.Module):
    """Keeps the lease until a line comes, if the last one said so."""

    is_staying = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Changes nothing."""
        if self.is_staying:
            say("staying")
            sys.stdin.readline()
        return x


def give_back() -> None:
    """A lane has the memory of a job that is free when its leases close."""
    job = gpushare.current()
    assert job is not None
    job.park()


def state() -> str:
    """What the coordinator says that this job does."""
    job = gpushare.current()
    assert job is not None
    rows = job._client().status()["devices"][0]["jobs"]
    return next(row["state"] for row in rows if row["job"] == job.number)


def interrupt_inside() -> None:
    """Ctrl-C, as soon as the job waits at a safepoint."""
    while stats()["lease_state"] != "kWanted":
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)


def make() -> tuple[torch.nn.Module, Middle]:
    """A model of many blocks."""
    torch.manual_seed(1)
    middle = Middle()
    first = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()) for _ in range(4)]
    last = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(4)]
    return torch.nn.Sequential(*first, middle, *last, End(middle)), middle


def train(*, is_alone: bool) -> dict[str, Any]:
    """Digest of all losses and parameters, and what the job did."""
    model, middle = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    if not is_alone:
        gpushare.register(model, optimizer, name="train")
        say("ready")
        sys.stdin.readline()
    digest = hashlib.sha256()
    outcome: dict[str, Any] = {"raised": ""}
    for middle.step in range(STEPS):
        optimizer.zero_grad()
        try:
            loss = model(torch.randn(ROWS, WIDTH)).square().mean()
            loss.backward()
        except (KeyboardInterrupt, RuntimeError) as error:
            outcome["raised"] = type(error).__name__
            outcome["state"] = stats()["lease_state"]
            continue
        finally:
            if middle.step == SLOW_STEP and not is_alone:
                outcome["inside"] = stats()["interruptions"]
                outcome["iterations"] = stats()["iterations"]
        optimizer.step()
        if not is_alone:
            give_back()
        digest.update(loss.detach().numpy().tobytes())
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return outcome | {"digest": digest.hexdigest(), "stats": {} if is_alone else stats()}


def serve() -> dict[str, Any]:
    """Some iterations at first, so that its sizes are known; then one whenever the test says so."""
    stay = Stay()
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), stay).eval()
    gpushare.register(model, name="serve")
    say("ready")
    sys.stdin.readline()
    with torch.no_grad():
        for _ in range(4):
            model(torch.randn(ROWS, WIDTH))
            give_back()
        say("warm")
        while (line := sys.stdin.readline()) != "end\n":
            stay.is_staying = line == "stay\n"
            model(torch.randn(ROWS, WIDTH))
            say("served")
    return {"stats": stats()}


if __name__ == "__main__":
    torch.set_num_threads(1)
    job = {"train": lambda: train(is_alone=False), "serve": serve}[sys.argv[1]]
    say(json.dumps(job()))
