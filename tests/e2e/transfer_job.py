"""A job that enters and leaves its iterations when it is told to."""

from __future__ import annotations

import argparse
import json
import select
import sys
from typing import Any


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    """--mib of zeros; each line lets it enter an iteration, which adds 1 to them, or leave it.

    Without iterations it only makes them, and never registers.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    arguments = parser.parse_args()
    import torch

    import gpushare

    if arguments.iterations == 0:
        zeros = torch.zeros(arguments.mib << 18)
        _say(ready=True)
        sys.stdin.readline()
        _say(done=True, is_intact=all(value == 0 for value in zeros.aminmax()))
        return
    job = gpushare.register(name=f"{arguments.mib}-mib")
    _say(ready=True)
    numbers: torch.Tensor | None = None
    for iteration in range(1, arguments.iterations + 1):
        sys.stdin.readline()
        with job.iteration():
            if numbers is None:
                numbers = torch.zeros(arguments.mib << 18)
            numbers += 1
            is_intact = all(value == iteration for value in numbers.aminmax())
            _say(is_intact=is_intact, spilled_bytes=job.stats().spilled_bytes)
            while not select.select([sys.stdin], [], [], 0.2)[0]:
                torch.empty(1)  # a process that only waits for input loses its lease after 2 s
            sys.stdin.readline()
        job.park()
        _say(has_left=True)
    job.close()
    _say(done=True)


if __name__ == "__main__":
    main()
