"""A job with iterations of a given amount of work and gaps of given lengths.

The work of an iteration is so many small matrix products, so that it takes longer where something
slows it down. Protocol as in `benchmarks.job`; the last line has each iteration's begin and end on
CLOCK_MONOTONIC. One thread.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import sys
import time
from collections.abc import Sequence

SIZE = 96
"""Rows and columns of the matrices: a product takes some 10 microseconds."""
WARM_UP = 5
"""Iterations before it is ready."""
SEED = 0
"""Of gaps that are drawn."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="paced")
    parser.add_argument("--products", type=int, help="of an iteration", required=True)
    parser.add_argument("--gap", type=float, default=0.0, help="seconds")
    parser.add_argument("--bursty", action="store_true", help="gaps of that mean, exponential")
    parser.add_argument("--iterations", type=int, default=0, help="0: until another line comes")
    parser.add_argument("--priority", default="normal")
    parser.add_argument("--weight", type=float, default=1.0)
    return parser.parse_args()


def products_of(seconds: float) -> int:
    """So many products take about that long here, when nothing else runs."""
    import torch

    torch.set_num_threads(1)
    x = torch.eye(SIZE)
    count = 2000
    taken = []
    for _ in range(5):
        begin = time.monotonic()
        for _ in range(count):
            torch.mm(x, x)
        taken.append(time.monotonic() - begin)
    return max(1, round(seconds * count / min(taken)))


def overlap(first: Sequence[float], second: Sequence[float]) -> float:
    """Seconds that two intervals, (begin, end) each, have in common."""
    return max(0.0, min(first[1], second[1]) - max(first[0], second[0]))


def is_told() -> bool:
    """Whether another line has come."""
    return bool(select.select([sys.stdin], [], [], 0)[0])


def main() -> None:
    """Runs the job; see the module's text for the protocol."""
    arguments = _arguments()
    import torch

    import gpushare

    torch.set_num_threads(1)
    job = gpushare.register(
        name=arguments.name,
        priority=arguments.priority,
        weight=arguments.weight,
        iterations=(WARM_UP + arguments.iterations) if arguments.iterations else None,
    )
    x = torch.eye(SIZE)
    gaps = random.Random(SEED)

    def iterate() -> tuple[float, float]:
        with job.iteration():
            begin = time.monotonic()
            for _ in range(arguments.products):
                torch.mm(x, x)
            return begin, time.monotonic()

    for _ in range(WARM_UP):
        iterate()
    job.park()
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    seen = []
    while not (len(seen) == arguments.iterations if arguments.iterations else is_told()):
        seen.append(iterate())
        if arguments.gap:
            mean = arguments.gap
            time.sleep(gaps.expovariate(1 / mean) if arguments.bursty else mean)
    print(json.dumps({"done": True, "iterations": seen}), flush=True)
    job.close()


if __name__ == "__main__":
    main()
