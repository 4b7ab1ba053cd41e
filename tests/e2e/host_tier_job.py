"""A job of a given size that says each iteration and waits for a line after it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    """--mib of ones; each iteration adds 1 to them; at the end they must be as many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    arguments = parser.parse_args()
    import torch

    import gpushare
    from gpushare.errors import GpushareError

    job = gpushare.register(name=f"{arguments.mib}-mib")
    _say(ready=True)
    sys.stdin.readline()
    numbers: torch.Tensor | None = None
    error = ""
    is_intact = False
    try:
        for number in range(arguments.iterations):
            with job.iteration():
                if numbers is None:
                    numbers = torch.zeros(arguments.mib << 18)
                numbers += 1
                is_intact = all(value == number + 1 for value in numbers.aminmax())
            _say(iteration=number)
            sys.stdin.readline()
    except (GpushareError, torch.OutOfMemoryError) as caught:
        error = f"{type(caught).__name__}: {caught}"
    numbers = None
    job.close()
    _say(done=True, error=error, is_intact=is_intact)


if __name__ == "__main__":
    main()
