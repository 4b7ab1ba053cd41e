"""A job that is interrupted inside an iteration, with work pending; or the one that interrupts it.

Started as `benchmarks.job` is, with its protocol. The one that trains says "inside" in the middle
of an iteration, and goes on once its lease is wanted back. The device completes work late.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from typing import Any

import torch

import gpushare
from tests.cuda import fake

STEPS = 5
SLOW_STEP = 3


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def _state(job: gpushare.Job) -> str:
    rows = job._client().status()["devices"][0]["jobs"]
    return str(next(row["state"] for row in rows if row["job"] == job.number))


class Middle(torch.nn.Module):
    """Where the iteration waits to be interrupted, in its forward or its backward."""

    def __init__(self, where: str) -> None:
        """Waits at no step yet."""
        super().__init__()
        self.job: gpushare.Job | None = None
        self.step = 0
        self.where = where
        self.register_full_backward_pre_hook(lambda *_: self.wait("backward"))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Changes nothing."""
        self.wait("forward")
        return x * 1.0

    def wait(self, where: str) -> None:
        """Until the lease is wanted back; then somebody looks what is pending when it is given."""
        if self.job is None or self.step != SLOW_STEP or self.where != where:
            return
        _say(inside=True)
        while _state(self.job) != "closing":
            time.sleep(0.001)
        _say(before=fake.num_pending())
        threading.Thread(target=self.look).start()

    def look(self) -> None:
        """What is pending without a lease, which the other one keeps until this is said."""
        assert self.job is not None
        while self.job.stats().lease_state != "kWanted":
            time.sleep(0.001)
        _say(without_lease=fake.num_pending())


def _train(where: str) -> dict[str, Any]:
    torch.manual_seed(1)
    middle = Middle(where)
    blocks = [torch.nn.Linear(256, 256).cuda() for _ in range(6)]
    model = torch.nn.Sequential(*blocks[:3], middle, *blocks[3:])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    is_shared = where != "alone"
    job = middle.job = (
        gpushare.register(model, optimizer, name="train", priority="opportunistic")
        if is_shared
        else None
    )
    _say(ready=True)
    sys.stdin.readline()
    x = torch.randn(64, 256).cuda()
    for middle.step in range(STEPS):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    interruptions = job.stats().interruptions if job is not None else 0
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return {
        "digest": digest.hexdigest(),
        "interruptions": interruptions,
        "violations": fake.violations(),
    }


class Stay(torch.nn.Module):
    """Keeps the lease until a line comes."""

    is_staying = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Changes nothing."""
        if self.is_staying:
            _say(staying=True)
            sys.stdin.readline()
        return x


def _serve() -> dict[str, Any]:
    stay = Stay()
    model = torch.nn.Sequential(torch.nn.Linear(256, 256).cuda(), stay).eval()
    gpushare.register(model, name="serve", priority="guaranteed")
    x = torch.randn(8, 256).cuda()
    with torch.no_grad():
        for _ in range(4):
            model(x)
        _say(ready=True)
        sys.stdin.readline()
        stay.is_staying = True
        model(x)
    return {"violations": fake.violations()}


def main() -> None:
    """Trains with `alone`, `forward` or `backward`; serves with `serve`."""
    fake.install_ops()
    what = sys.argv[1]
    _say(done=True, **(_serve() if what == "serve" else _train(what)))


if __name__ == "__main__":
    main()
