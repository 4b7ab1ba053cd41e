"""A model under a watcher whose gate only writes down what it is told, and loops to train it."""

from __future__ import annotations

import torch
from torch import nn

from gpushare._torch.optimizer_steps import watch_steps
from gpushare._torch.watcher import Watcher

watch_steps()  # as importing gpushare does


class RecordingGate:
    """Keeps the gate's contract: in and out in turn."""

    def __init__(self):
        self.log = []
        self.is_inside = False
        self.error = None
        self.num_leases = 1
        self.num_waits = 0
        self.marked = []

    def begin_step(self):
        self.num_waits += 1
        return self.num_leases

    def live_bytes(self):
        return 0

    def mark_late(self, addresses):
        self.marked.append(addresses)

    def enter(self):
        if self.error is not None:
            raise self.error
        assert not self.is_inside
        self.is_inside = True

    def leave(self, kind, is_optimizer_step):
        assert self.is_inside
        self.is_inside = False
        self.log.append(kind + ("*" if is_optimizer_step else ""))

    def close(self):
        self.is_inside = False
        self.log.append("closed")


class Watched:
    def __init__(self, model, optimizers=()):
        self.model = model
        self.gate = RecordingGate()
        self.watcher = Watcher(self.gate.mark_late, gate=self.gate, has_optimizer=bool(optimizers))
        self.watcher.attach(model, list(optimizers))

    @property
    def log(self):
        return self.gate.log


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def batch():
    return torch.ones(2, 4)


def train(model, optimizer, num_steps=1, num_micro_batches=1):
    for _ in range(num_steps):
        optimizer.zero_grad()
        for _ in range(num_micro_batches):
            model(batch()).sum().backward()
        optimizer.step()
