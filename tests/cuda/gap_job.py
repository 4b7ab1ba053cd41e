"""A job that trains while another of its threads, and its code between iterations, use the device.

With --poison it is the other job instead: in each iteration it fills all the memory that it can
have with one value. Both count the tensors that are not as they made them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from tests.cuda import fake

POISON = -777.0
MIB_IN_FLOATS = 1 << 18
POISONED_MIB = 64
PIECE_MIB = 8


class Stray(threading.Thread):
    """Makes tensors on the device and looks at them, whatever the main thread does."""

    def __init__(self, hold: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__(daemon=True)
        self._hold = hold
        self.num_wrong = 0
        self.num_done = 0
        self.error = ""
        self._must_stop = threading.Event()

    def run(self) -> None:
        try:
            while not self._must_stop.wait(0.001):
                self._look()
        except Exception as error:
            self.error = repr(error)

    def stop(self) -> None:
        self._must_stop.set()
        self.join()

    def _look(self) -> None:
        self.num_done += 1
        size = 1000 * (self.num_done % 200 + 1)
        own = torch.empty(size, device="cuda")
        # What has moved cannot be used. Nothing is allocated in here: others may have to wait for
        # the end of it before there is room.
        with self._hold():
            own.fill_(self.num_done)
            self.num_wrong += not is_all(own.cpu(), float(self.num_done))


def is_all(tensor: torch.Tensor, value: float) -> bool:
    """Whether each element is the value."""
    return bool((tensor == value).all())


def train(steps: int, *, is_marked: bool) -> dict[str, Any]:
    """The trainer; what the gap and the stray thread make is no part of what it computes."""
    import gpushare
    from benchmarks import workloads

    workload = workloads.build("mlp", seed=1, optimizer="adam", device="cuda")
    watched = () if is_marked else (workload.model, workload.optimizer)
    job = gpushare.register(*watched, name="trainer")
    iteration = job.iteration if is_marked else nullcontext
    _wait_to_go()
    stray = Stray(job.hold)
    stray.start()
    digest = hashlib.sha256()
    num_wrong = 0
    kept = torch.full((100_000,), -1.0, device="cuda")
    for number in range(steps):
        with iteration():
            loss = workload.step(number)
            num_wrong += not is_all(kept, number - 1.0)
        digest.update(loss.cpu().numpy().tobytes())
        kept = torch.full((100_000,), float(number), device="cuda")
        num_wrong += not is_all(kept * 2 + 1, number * 2 + 1.0)
    for parameter in workload.model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    stray.stop()
    return {
        "digest": digest.hexdigest(),
        "num_wrong": num_wrong + stray.num_wrong,
        "num_stray": stray.num_done,
        "error": stray.error,
        "stats": vars(job.stats()) if job.is_managed else {},
    }


def poison(steps: int) -> dict[str, Any]:
    """The other job."""
    import gpushare

    job = gpushare.register(name="poison")
    _wait_to_go()
    num_wrong = 0
    for _ in range(steps):
        with job.iteration():
            pieces = [
                torch.full((PIECE_MIB * MIB_IN_FLOATS,), POISON, device="cuda")
                for _ in range(POISONED_MIB // PIECE_MIB)
            ]
            num_wrong += sum(not is_all(piece, POISON) for piece in pieces)
            del pieces
    return {"num_wrong": num_wrong, "error": "", "stats": vars(job.stats())}


def _wait_to_go() -> None:
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()


def main() -> None:
    """One of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--poison", action="store_true")
    parser.add_argument("--marked", action="store_true", help="with job.iteration()")
    parser.add_argument("--steps", type=int, required=True)
    arguments = parser.parse_args()
    fake.install_ops()
    if arguments.poison:
        said = poison(arguments.steps)
    else:
        said = train(arguments.steps, is_marked=arguments.marked)
    torch.cuda.synchronize()
    print(json.dumps({"done": True, "violations": fake.violations(), **said}), flush=True)


if __name__ == "__main__":
    main()
