"""A process that trains on the device as it is told: the two sides of a comparison run in turn.

Orders come on stdin, a JSON object a line, and are answered with one:
{"steps": N}: trains, waits for the device, {"seconds": ..., "begun": ..., "ended": ...}, by
CLOCK_MONOTONIC; {"park": true}: gives the lease back; {"stats": true}: gpushare's figures;
{"pairs": N, "bytes": B}: so many blocks of torch's taken and given back, {"seconds": ...};
{"requests": N, "every": S}: single steps S seconds apart, each waited for, {"latencies": [...]}.
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
    """The parent's side."""

    def __init__(self, *arguments: str, env: dict[str, str]) -> None:
        """Starts it; see `main` for the arguments."""
        super().__init__(*arguments, env=env, module=MODULE)

    def order(self, **what: Any) -> None:
        """Tells it to do something; `say()` is its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def train(self, steps: int) -> float:
        """Seconds of so many steps, the device's end included."""
        self.order(steps=steps)
        return float(self.say()["seconds"])

    def stats(self) -> dict[str, Any]:
        """Its figures, as gpushare has them."""
        self.order(stats=True)
        return self.say()

    def take_and_give_back(self, pairs: int, size: int) -> float:
        """Seconds of so many blocks of `size` bytes, which torch has in its cache."""
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
