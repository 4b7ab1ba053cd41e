"""One job of the demo: ``python -m gpushare.demo.job NAME MODE``, a process of its own.

It says what happens in JSON lines on standard output, and waits for a line on standard input before
it trains, so that no scene's time contains imports; and for the end of its input before it ends, as
the end of a process costs half a second of a core that others train on. Nobody on the other end
(the demo was killed) ends it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

import gpushare
from gpushare import _native, stats
from gpushare.demo.mode import MODES, SHARED, STOCK
from gpushare.demo.text import load_text
from gpushare.demo.training import Outcome, train, warm_up
from gpushare.demo.workload import find_workload

OUT_OF_MEMORY_EXIT = 5
"""Told apart from a crash by the parent."""


def say(event: str, **fields: Any) -> None:
    """Writes one line that the demo reads."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Trains one workload in one of the modes."""
    arguments = _parse_arguments()
    data = load_text()
    workload = find_workload(arguments.name, is_quick=arguments.quick)
    if arguments.iterations:
        workload = workload.shortened(arguments.iterations)
    warm_up(data, workload)
    say("ready", pid=os.getpid(), reserved_range=_reserved_range(arguments.mode))
    if not sys.stdin.readline():
        return
    parent = os.getppid()
    figures: dict[str, Any] = {}

    def on_iteration(number: int) -> None:
        if os.getppid() != parent:
            os._exit(1)
        if number == workload.num_iterations:
            # Model and optimizer are still alive here.
            figures.update(_figures(arguments.mode))
        say("iteration", number=number)

    try:
        outcome = train(workload, data, _registration(arguments), on_iteration)
    except (torch.OutOfMemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        text = " ".join(str(error).split())
        say("out_of_memory", text=text, stats=_figures(arguments.mode))
        sys.exit(OUT_OF_MEMORY_EXIT)
    job = gpushare.current()
    if job is not None:
        job.close()
    say("done", **_describe(outcome), stats=figures)
    sys.stdin.readline()


def is_out_of_memory(error: Exception) -> bool:
    """Tells out of memory from other errors; torch's CPU allocator raises a plain RuntimeError."""
    return isinstance(error, torch.OutOfMemoryError) or "not enough memory" in str(error)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="One job of gpushare's demo.")
    parser.add_argument("name")
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--iterations", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


def _registration(
    arguments: argparse.Namespace,
) -> Callable[[nn.Module, torch.optim.Optimizer], None]:
    def register(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        if arguments.mode == SHARED:
            gpushare.register(model, optimizer, name=arguments.name)

    return register


def _reserved_range(mode: str) -> tuple[int, int] | None:
    if mode == STOCK:
        return None
    first, size_bytes = _native.load().reserved_range()
    return first, size_bytes


def _figures(mode: str) -> dict[str, Any]:
    if mode == STOCK:
        return {}
    memory = stats.memory_stats()
    return {
        **asdict(stats.job_stats()),
        "live_bytes": memory["allocated_bytes.all.current"],
        "peak_reserved_bytes": memory["reserved_bytes.all.peak"],
    }


def _describe(outcome: Outcome) -> dict[str, Any]:
    return {
        "losses": outcome.losses,
        "parameters_hash": outcome.parameters_hash,
        "spans_ns": outcome.spans_ns,
        "last_loss": outcome.last_loss,
    }


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
