"""A job whose threads, and whose code between iterations, go on with its tensors.

One thread reads a tensor that never changes, another allocates, fills and checks. At the end it
says what was wrong, and how many of its looks found memory away.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

MIB_IN_FLOATS = 1 << 18
GAP_SECONDS = 0.05


class Threads:
    """The reader and the allocator, until stop()."""

    def __init__(self, constant: torch.Tensor, value: float) -> None:
        """Starts them."""
        self.wrong: Counter[str] = Counter()
        self.num_done = 0
        self._constant = constant
        self._value = value
        self._must_stop = threading.Event()
        # Daemons: a job that fails ends, although they go on.
        self._threads = [
            threading.Thread(target=f, daemon=True) for f in (self._read, self._allocate)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends them."""
        self._must_stop.set()
        for thread in self._threads:
            thread.join()

    def _read(self) -> None:
        while not self._must_stop.is_set():
            self.wrong["read by a thread"] += not is_all(self._constant, self._value)
            self.num_done += 1
            time.sleep(0.001)

    def _allocate(self) -> None:
        import torch

        number = 0
        while not self._must_stop.is_set():
            number += 1
            floats = torch.full((1000 * (number % 500 + 1),), float(number))
            self.wrong["allocated by a thread"] += not is_all(floats, float(number))
            time.sleep(0.001)


def is_all(tensor: torch.Tensor, value: float) -> bool:
    """Whether each element is the value."""
    low, high = tensor.aminmax()
    return bool(low == value and high == value)


def status_of_child(tensor: torch.Tensor, value: float) -> int:
    """0 if a forked child sees the same while its parent's memory may move; as waitpid says it."""
    child = os.fork()
    if child == 0:
        time.sleep(2 * GAP_SECONDS)
        os._exit(0 if is_all(tensor, value) else 1)
    return os.waitpid(child, 0)[1]


def main() -> None:
    """--mib in all, half of them constant; the other half counts the iterations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--value", type=float, required=True)
    arguments = parser.parse_args()
    import torch

    import gpushare

    torch.set_num_threads(1)
    job = gpushare.register(name=f"gap-{arguments.value}")
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    wrong: Counter[str] = Counter()
    num_away = 0
    counting = loss = threads = None
    for number in range(arguments.iterations):
        with job.iteration():
            if threads is None:
                half = arguments.mib * MIB_IN_FLOATS // 2
                constant, counting = torch.full((half,), arguments.value), torch.zeros(half)
                threads = Threads(constant, arguments.value)
            counting += 1
            loss = counting[:1000].mean()
        time.sleep(GAP_SECONDS)
        num_away += job.stats().spilled_bytes > 0
        wrong["loss"] += loss.item() != number + 1
        wrong["read in the gap"] += not is_all(counting, number + 1)
        if number % 4 == 1 and (status := status_of_child(counting, number + 1)) != 0:
            wrong[f"child ended with {status}"] += 1
        if number % 4 == 3:
            with job.hold():
                wrong["away within hold"] += job.stats().spilled_bytes != 0
    threads.stop()
    wrong += threads.wrong
    stats: dict[str, Any] = vars(job.stats())
    job.close()
    said = {"wrong": wrong, "num_away": num_away, "num_reads": threads.num_done}
    print(json.dumps({"done": True, **said, "stats": stats}), flush=True)


if __name__ == "__main__":
    main()
