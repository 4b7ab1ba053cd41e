"""A process that trains on the device as it is told, so that two such processes can take turns.

Orders come on stdin. An order is a JSON object on a line, and so is its answer:

- {"steps": N} trains and waits for the device. The answer is {"seconds": ..., "begun": ...,
  "ended": ...}, by CLOCK_MONOTONIC.
- {"park": true} gives the lease back.
- {"stats": true} asks for gpushare's figures.
- {"pairs": N, "bytes": B} takes so many blocks from torch's cache and gives them back. The answer
  is {"seconds": ...}.
- {"requests": N, "every": S} does single steps S seconds apart, and waits for each. The answer is
  {"latencies": [...]}.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from benchmarks.processes import JobProcess

MODULE = "benchmarks.device.training"


class Trainer(JobProcess):
    """The parent's side of such a process."""

    def __init__(self, *arguments: str, env: dict[str, str]) -> None:
        """Starts the process; `_arguments` has its arguments."""
        super().__init__(*arguments, env=env, module=MODULE)

    def order(self, **what: Any) -> None:
        """Tells it to do something; `say()` is its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def train(self, steps: int) -> float:
        """Trains so many steps; returns their seconds, until the device has done them."""
        self.order(steps=steps)
        return float(self.say()["seconds"])

    def stats(self) -> dict[str, Any]:
        """Returns gpushare's figures of the job."""
        self.order(stats=True)
        return self.say()

    def take_and_give_back(self, pairs: int, size: int) -> float:
        """Returns the seconds of taking and giving back blocks of torch's cache, `pairs` times."""
        self.order(pairs=pairs, bytes=size)
        return float(self.say()["seconds"])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--state-bytes", type=int, default=0)
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--priority", default="normal")
    parser.add_argument("--warm-up", type=int, default=5)
    return parser.parse_args()


def _timed(step: Any, steps: int) -> dict[str, float]:
    import torch

    begun = time.monotonic()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    ended = time.monotonic()
    return {"seconds": ended - begun, "begun": begun, "ended": ended}


def _pairs(pairs: int, size: int) -> float:
    import torch

    begun = time.monotonic()
    for _ in range(pairs):
        torch.cuda.caching_allocator_delete(torch.cuda.caching_allocator_alloc(size))
    return time.monotonic() - begun


def _latencies(step: Any, requests: int, every: float) -> list[float]:
    import torch

    seen = []
    for _ in range(requests):
        time.sleep(every)
        begun = time.monotonic()
        step()
        torch.cuda.synchronize()
        seen.append(time.monotonic() - begun)
    return seen


def main() -> None:
    """Builds the model, says {"ready": true}, and answers orders until stdin ends."""
    arguments = _arguments()
    if arguments.shared:
        import gpushare
    import torch

    from benchmarks.device import machine, models

    machine.start()
    training = models.build(arguments.model, state_bytes=arguments.state_bytes)
    job = None
    if arguments.shared:
        job = gpushare.register(training.model, training.optimizer, priority=arguments.priority)
    _timed(training.step, arguments.warm_up)
    _say(
        ready=True,
        is_managed=job is not None and job.is_managed,
        peak_bytes=torch.cuda.max_memory_allocated(),
    )
    for line in sys.stdin:
        order = json.loads(line)
        if "steps" in order:
            _say(**_timed(training.step, order["steps"]))
        elif "pairs" in order:
            _say(seconds=_pairs(order["pairs"], order["bytes"]))
        elif "requests" in order:
            _say(latencies=_latencies(training.step, order["requests"], order["every"]))
        elif "park" in order and job is not None:
            job.park()
            _say(parked=True)
        else:
            from gpushare import _native

            _say(**_native.load().job_stats())
    if job is not None:
        job.close()


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
