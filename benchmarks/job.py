"""One job of a benchmark or an end-to-end test: trains a workload, says what it saw.

Started by `benchmarks.processes`. Protocol on stdin and stdout, one JSON object a line: the job
says {"ready": ...} when its model is built and warm, waits for a line, trains, and says its
result. With --shared it registers with gpushare; with --allocator it only takes gpushare's
allocator.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from typing import Any


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", default="mlp")
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch-size", type=int, help="samples (default: the workload's own)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--name", default="")
    parser.add_argument("--weight", type=float, default=1.0)
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--known-length", action="store_true", help="register(iterations=...)")
    parser.add_argument("--allocator", action="store_true")
    parser.add_argument("--progress", action="store_true", help="say each step's number")
    parser.add_argument(
        "--linger", action="store_true", help="end when stdin is closed, not before"
    )
    parser.add_argument("--books", action="store_true", help="compare memory with the kernel's")
    parser.add_argument("--park", action="store_true", help="close the lease before saying ready")
    return parser.parse_args()


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def _digest(losses: list[bytes], parameters: list[Any]) -> str:
    whole = hashlib.sha256()
    for loss in losses:
        whole.update(loss)
    for parameter in parameters:
        whole.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return whole.hexdigest()


def main() -> None:
    """Runs the job; see the module's text for the protocol."""
    arguments = _arguments()
    if arguments.shared or arguments.allocator:
        import gpushare
    import torch

    from benchmarks import workloads

    workload = workloads.build(
        arguments.workload,
        seed=arguments.seed,
        optimizer=arguments.optimizer,
        device=arguments.device,
        batch_size=arguments.batch_size,
    )
    job = None
    if arguments.shared:
        job = gpushare.register(
            workload.model,
            workload.optimizer,
            name=arguments.name or None,
            weight=arguments.weight,
            iterations=arguments.warm_up + arguments.steps if arguments.known_length else None,
        )
    # After gpushare's hook, so past its gate: an iteration's own time, without waiting for a turn.
    begins: list[float] = []
    workload.model.register_forward_pre_hook(lambda *_: begins.append(time.monotonic()))
    losses = []
    for number in range(arguments.warm_up):
        losses.append(workload.step(number).cpu().numpy().tobytes())
    if job is not None and arguments.park:
        job.step()
    _say(ready=True, pid=os.getpid(), threads=torch.get_num_threads(), range=_range(arguments))
    sys.stdin.readline()
    before = _stats(job)
    seconds: list[float] = []
    inside_seconds: list[float] = []
    books: list[tuple[int, int]] = []
    started = time.monotonic()
    for number in range(arguments.warm_up, arguments.warm_up + arguments.steps):
        begun = time.monotonic()
        losses.append(workload.step(number).cpu().numpy().tobytes())
        done = time.monotonic()
        seconds.append(done - begun)
        inside_seconds.append(done - begins[-1])
        if arguments.books:
            books.append(_books(arguments))
        if arguments.progress:
            _say(step=number)
    ended = time.monotonic()
    stats = _stats(job)
    if job is not None:
        job.close()
    _say(
        done=True,
        started=started,
        ended=ended,
        iteration_seconds=seconds,
        inside_seconds=inside_seconds,
        books=books,
        digest=_digest(losses, list(workload.model.parameters())),
        stats_before=before,
        stats=stats,
    )
    if arguments.linger:
        sys.stdin.readline()


def _range(arguments: argparse.Namespace) -> list[int]:
    """First address and size of the range that all segments of this process lie in."""
    if not (arguments.shared or arguments.allocator):
        return []
    from gpushare import _native

    return list(_native.load().reserved_range())


def _books(arguments: argparse.Namespace) -> tuple[int, int]:
    """Resident bytes of its segments as the kernel says, and as the allocator does.

    Without what it shares, or shared: that may be somebody else's at any moment.
    """
    from gpushare.demo.kernel_memory import resident_bytes_in
    from gpushare.stats import memory_stats

    def booked() -> int:
        stats = memory_stats()
        return int(stats["reserved_bytes.all.current"] - stats["donated_bytes"])

    base, size = _range(arguments)
    while True:  # until no memory was taken away between the two
        before = booked()
        kernel = resident_bytes_in(os.getpid(), base, size, shared="none")
        if booked() == before:
            return kernel, before


def _stats(job: Any) -> dict[str, Any]:
    if job is None:
        return {}
    from gpushare import _native

    return dict(_native.load().job_stats())


if __name__ == "__main__":
    main()
