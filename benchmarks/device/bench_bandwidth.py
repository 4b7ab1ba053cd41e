"""Compares spilling and restoring of live memory with plain pinned copies of as many bytes.

One process does both in turn. It spills and restores all of a job's memory. Then the runtime copies
between device and pinned memory, each way and both ways at once. A thread looks whether all memory
is away. Each look takes the allocator's lock, which spilling needs too, so the thread begins
shortly before the moment it expects, and stops once it has seen it.

For `both_over_one` two processes change places, each with nearly the device's capacity. The figure
is the time of one way after the other, over the time of the change, in which both ways run at once.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.device import machine
from benchmarks.device.machine import MIB, device, size
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

MEMORY_BYTES = 4 << 30
FAKE_BYTES = 64 * MIB
LOOK_FROM = 0.85
"""The moment of the first look, as a part of the shortest time of a spill so far."""
LOOK_EVERY_SECONDS = 0.001


def moves(native: Any, live_bytes: int, rounds: int) -> Iterator[tuple[float, float]]:
    """Yields the seconds of spilling and of restoring all memory, once a round."""
    # The first spill is watched from its beginning, since its length is unknown, and not counted.
    shortest = _move(native, live_bytes, 0.0)[0]
    for _ in range(rounds):
        try:
            spilled, restored = _move(native, live_bytes, LOOK_FROM * shortest)
        except _LookedTooLateError:
            spilled, restored = _move(native, live_bytes, 0.0)
        shortest = min(shortest, spilled)
        yield spilled, restored


class _LookedTooLateError(RuntimeError):
    """All memory was away before the first look, or not any more."""


def _move(native: Any, live_bytes: int, look_after: float) -> tuple[float, float]:
    """Returns the seconds of one spill and one restore; first looks after `look_after` seconds."""
    away: list[float] = []
    num_looks = 0
    is_over = threading.Event()

    def watch() -> None:
        nonlocal num_looks
        wait = look_after
        while not away and not is_over.wait(wait):
            if native.memory_stats()["spilled_bytes"] >= live_bytes:
                away.append(time.perf_counter())
            num_looks += 1
            wait = LOOK_EVERY_SECONDS

    watcher = threading.Thread(target=watch)
    watcher.start()
    begun = time.perf_counter()
    native.spill_and_restore()
    ended = time.perf_counter()
    is_over.set()
    watcher.join()
    if not away or num_looks == 1:
        raise _LookedTooLateError("all memory was never seen to go away")
    return away[0] - begun, ended - away[0]


def _copy(device_side: Any, host_side: Any, ways: str) -> float:
    """Returns the seconds of plain copies "out", "in" or "out+in", each way on its own stream."""
    import torch

    streams = {way: torch.cuda.Stream() for way in ways.split("+")}
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for number, (way, stream) in enumerate(streams.items()):
        with torch.cuda.stream(stream):
            if way == "out":
                host_side[number].copy_(device_side[number], non_blocking=True)
            else:
                device_side[number].copy_(host_side[number], non_blocking=True)
    torch.cuda.synchronize()
    return time.perf_counter() - begun


def _measure_one(num_bytes: int, rounds: int) -> dict[str, list[float]]:
    """Measures in a job's process; returns the seconds by what was timed."""
    import torch

    import gpushare
    from gpushare import _native

    machine.start()
    # The copies use pinned memory, made outside of iterations, which gpushare does not move.
    host = [torch.ones(num_bytes, dtype=torch.uint8).pin_memory() for _ in range(2)]
    job = gpushare.register(torch.nn.Linear(1, 1).to("cuda"))
    native = _native.load()
    seen: dict[str, list[float]] = {}
    with job.iteration():
        there = [host[0].to("cuda") for _ in range(2)]
    live = 2 * num_bytes
    native.spill_and_restore()  # pins the host tier
    for spilled, restored in moves(native, live, rounds):
        seen.setdefault("spill", []).append(spilled)
        seen.setdefault("restore", []).append(restored)
        for ways in ("out", "in", "out+in"):
            seen.setdefault(ways, []).append(_copy(there, host, ways))
    job.close()
    return seen


def _exchange(num_bytes: int, rounds: int) -> None:
    """Takes turns with the other job's process; writes how long its gate waited, each time."""
    import torch

    import gpushare

    machine.start()
    job = gpushare.register(torch.nn.Linear(1, 1).to("cuda"))
    kept: list[Any] = []
    print(json.dumps({"ready": True}), flush=True)
    for _ in range(rounds):
        sys.stdin.readline()
        begun = time.monotonic()
        with job.iteration():
            entered = time.monotonic()
            if not kept:
                kept.append(torch.ones(num_bytes, dtype=torch.uint8).to("cuda"))
        job.park()
        print(json.dumps({"waited": entered - begun}), flush=True)
    job.close()


def _exchange_seconds(num_bytes: int, rounds: int) -> list[float]:
    """Returns how long each job's gate waited for its memory, while the other job's memory left."""
    capacity = str(num_bytes + num_bytes // 4)
    arguments = ("exchange", str(num_bytes), str(rounds))
    with (
        device() as env,
        private_coordinator(capacity=capacity, min_quantum="0") as more,
        JobProcess(*arguments, env=env | more, module=__name__) as first,
        JobProcess(*arguments, env=env | more, module=__name__) as second,
    ):
        jobs = (first.wait_ready(), second.wait_ready())
        # The first turns make the memory, and pin what it goes to.
        waited = [job.go().say()["waited"] for _ in range(rounds) for job in jobs]
    return waited[4:]


def run(*, quick: bool) -> Report:
    """Measures all, in about a minute."""
    report = Report(name="bandwidth")
    num_bytes = size(MEMORY_BYTES, FAKE_BYTES // 2)
    rounds = 3 if quick else size(12, 3)
    with device() as env, private_coordinator() as more:
        arguments = ("one", str(num_bytes), str(rounds))
        with JobProcess(*arguments, env=env | more, module=__name__) as job:
            seen = job.say()
    exchanges = _exchange_seconds(2 * num_bytes, rounds + 2)
    gigabytes = num_bytes / 1e9
    moved = {"spill": 2, "restore": 2, "out": 1, "in": 1, "out+in": 2}
    speeds = {what: [n * gigabytes / s for s in seen[what]] for what, n in moved.items()}
    names = {"out": "pinned_out", "in": "pinned_in", "out+in": "pinned_both"}
    for what, values in speeds.items():
        name = f"{names.get(what, what)}_gb_per_second"
        report.figures[name] = report.add_samples(name, values)
    for what, copy in (("spill", "out"), ("restore", "in")):
        ratios = [a / b for a, b in zip(speeds[what], speeds[copy], strict=True)]
        report.figures[f"{what}_over_pinned_copy"] = statistics.median(ratios)
    exchange = report.add_samples("exchange_seconds", exchanges)
    one = statistics.median(seen["spill"]) + statistics.median(seen["restore"])
    report.figures["both_over_one"] = one / exchange
    report.notes.append(f"{2 * num_bytes / 1e9:.1f} GB of live memory moved each way")
    return report


if __name__ == "__main__":
    size_bytes, num_rounds = int(sys.argv[2]), int(sys.argv[3])
    if sys.argv[1] == "one":
        print(json.dumps(_measure_one(size_bytes, num_rounds)))
    else:
        _exchange(size_bytes, num_rounds)
