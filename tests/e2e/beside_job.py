"""A job that leaves marks in a folder while it is in an iteration, and looks for the others'.

It trains what `benchmarks.lane_job` does, with --shared inside `with job.iteration()`. At iteration
--meet-at it stays inside until --jobs jobs are inside theirs, with --stay until it is told to go
on; then it needs --grow-mib more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.lane_job import Trainer

MEETING_SECONDS = 240.0
"""Far longer than any start-up; who is alone then fails."""


class Marks:
    """Files of a folder: who is inside an iteration, and who came to the meeting."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Of the job with that seed."""
        self._folder = folder
        self._inside = folder / f"inside-{seed}"
        self._met = folder / f"met-{seed}"
        self.num_together = 0

    def enter(self) -> None:
        """Its iteration has begun."""
        self._inside.touch()
        self.look()

    def look(self) -> None:
        """Counts how often another one is inside."""
        inside = set(self._folder.glob("inside-*"))
        self.num_together += bool(inside - {self._inside})

    def leave(self) -> None:
        """Its iteration is about to end."""
        self.look()
        self._inside.unlink()

    def meet(self, count: int) -> None:
        """Waits inside for the others, at work: an idle job would lose its lease."""
        self._met.touch()
        self.work_until(lambda: len(list(self._folder.glob("met-*"))) >= count)

    def work_until(self, is_over: Callable[[], bool]) -> None:
        """Idles nowhere until then."""
        ends = time.monotonic() + MEETING_SECONDS
        while not is_over():
            assert time.monotonic() < ends, "nobody else is in an iteration"
            sum(range(100_000))


def grow(mib: int) -> None:
    """Fills so much, piece by piece, and checks it."""
    import torch

    pieces = [torch.full((4 << 18,), float(number)) for number in range(mib // 4)]
    for number, piece in enumerate(pieces):
        low, high = piece.aminmax()
        assert low == number, "a piece has changed"
        assert high == number, "a piece has changed"


def threads_and_cpus() -> tuple[int, int]:
    """How many threads work on an operation, and on how many CPUs the thread that asks may run."""
    import torch

    return torch.get_num_threads(), len(os.sched_getaffinity(0))


def main() -> None:
    """Runs the job; protocol as in `benchmarks.job`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--meet-at", type=int, default=-1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--grow-mib", type=int, default=0)
    parser.add_argument("--stay", action="store_true", help="stay inside until there is go-on")
    parser.add_argument("--shared", action="store_true")
    arguments = parser.parse_args()
    arguments.fork_every, arguments.keep_at = 0, -1
    job = None
    if arguments.shared:
        import gpushare

        job = gpushare.register(name=f"beside-{arguments.seed}")
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    marks = Marks(arguments.folder, arguments.seed)
    trainer: Trainer | None = None
    losses: list[str] = []
    cores: set[tuple[int, int]] = set()
    for number in range(arguments.iterations):
        with job.iteration() if job is not None else contextlib.nullcontext():
            marks.enter()
            trainer = trainer or Trainer(arguments)
            cores.add(threads_and_cpus())
            losses.append(trainer.iterate(number))
            if number == arguments.meet_at:
                marks.meet(arguments.jobs)
                if arguments.stay:
                    marks.work_until((arguments.folder / "go-on").exists)
                grow(arguments.grow_mib)
            marks.leave()
    stats: dict[str, Any] = vars(job.stats()) if job is not None else {}
    if job is not None:
        job.close()
    said = {"losses": losses, "num_together": marks.num_together, "stats": stats}
    said |= {"cores": sorted(cores), "cores_after": threads_and_cpus()}
    print(json.dumps({"done": True, **said}), flush=True)


if __name__ == "__main__":
    main()
