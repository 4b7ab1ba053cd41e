"""Measures the cost of keeping spilled memory reachable, and how fast a kernel reads such memory.

For `spill_*` and `restore_*` all of a job's live memory leaves the device and comes back. The host
tier is mapped at the memory's addresses (reachable) or not (unmapped), each in a process of its
own. For `read_resident` a kernel reads a job's memory on the device. For `read_spilled` it reads
memory that was spilled to make room for another job.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any

from benchmarks.device import machine
from benchmarks.device.bench_bandwidth import moves
from benchmarks.device.machine import MIB, device, size
from benchmarks.processes import JobProcess, private_coordinator
from benchmarks.report import Report

MEMORY_BYTES = 4 << 30
FAKE_BYTES = 96 * MIB
# Room for temporary memory of the reader. As much of its other memory may stay.
SPARE_BYTES = 24 * MIB
MODES = {"reachable": "on", "unmapped": "off"}


def _measure_moves(num_bytes: int, rounds: int) -> dict[str, list[float]]:
    """Measures in a job's process; returns the seconds of spilling and of restoring."""
    import torch

    import gpushare
    from gpushare import _native

    machine.start()
    job = gpushare.register(torch.nn.Linear(1, 1).to("cuda"))
    native = _native.load()
    with job.iteration():
        kept = torch.ones(num_bytes, dtype=torch.uint8).to("cuda")
    native.spill_and_restore()  # makes the host tier
    seen = list(moves(native, kept.numel(), rounds))
    job.close()
    return {"spill": [spilled for spilled, _ in seen], "restore": [back for _, back in seen]}


def _reading(tensor: Any, rounds: int) -> list[float]:
    """Returns the seconds of a kernel that reads all of the tensor, once a round."""
    import torch

    seen = []
    for number in range(rounds + 1):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        tensor.sum()
        torch.cuda.synchronize()
        if number > 0:
            seen.append(time.perf_counter() - begun)
    return seen


def _read(num_bytes: int, rounds: int) -> None:
    """Reads a job's memory in the job's process, first resident and then spilled."""
    import torch

    import gpushare

    machine.start()
    job = gpushare.register(name="reader")
    with job.iteration():
        kept = torch.ones(num_bytes // 4).to("cuda")
        seen = {"resident": _reading(kept, rounds)}
    job.park()
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    if (spilled := job.stats().spilled_bytes) < num_bytes - SPARE_BYTES:
        raise RuntimeError(f"{spilled} bytes of {num_bytes} are spilled")
    seen["spilled"] = _reading(kept, rounds)
    print(json.dumps(seen), flush=True)


def _take(num_bytes: int) -> None:
    """Takes all but a little of the device, in the other job's process."""
    import torch

    import gpushare

    machine.start()
    job = gpushare.register(name="taker")
    with job.iteration():
        kept = torch.ones(num_bytes // 4).to("cuda")
        print(json.dumps({"ready": kept.numel() > 0}), flush=True)
        sys.stdin.readline()
    print(json.dumps({"done": True}), flush=True)


def _reading_seconds(num_bytes: int, rounds: int) -> dict[str, list[float]]:
    capacity = str(num_bytes + SPARE_BYTES)
    with device() as env, private_coordinator(capacity=capacity, min_quantum="0") as more:
        both = env | more
        reader = JobProcess("read", str(num_bytes), str(rounds), env=both, module=__name__)
        with reader as first:
            first.wait_ready()
            # The taker starts only now: until here the reader needs the whole device.
            taker = JobProcess("take", str(num_bytes), "0", env=both, module=__name__)
            with taker as second:
                second.wait_ready()
                seen: dict[str, list[float]] = first.go().say()
                second.go().say()
    return seen


def _can_reach() -> bool:
    """Returns whether the device can, unless the suite's probe of host chunks has failed."""
    if os.environ.get("GPUSHARE_REACHABLE") == "off":
        return False
    with device() as env, JobProcess("ask", "0", "0", env=env, module=__name__) as job:
        return bool(job.say()["can"])


def _ask() -> bool:
    from gpushare import _native

    return _native.load().cuda_device_info(0)["can_reach_spilled"]


def run(*, quick: bool) -> Report:
    """Measures all, in about half a minute."""
    report = Report(name="reachable")
    num_bytes = size(MEMORY_BYTES, FAKE_BYTES)
    rounds = 3 if quick else size(10, 3)
    can_reach = _can_reach()
    gigabytes = num_bytes / 1e9
    for mode, switch in MODES.items():
        if mode == "reachable" and not can_reach:
            continue
        with device() as env, private_coordinator() as more:
            whole = env | more | {"GPUSHARE_REACHABLE": switch}
            with JobProcess("move", str(num_bytes), str(rounds), env=whole, module=__name__) as job:
                for way, seconds in job.say().items():
                    name = f"{way}_{mode}_gb_per_second"
                    speeds = [gigabytes / each for each in seconds]
                    report.figures[name] = report.add_samples(name, speeds)
    if not can_reach:
        report.notes.append("memory of the host cannot be used in place here, or is not to be")
        return report
    for where, seconds in _reading_seconds(num_bytes, rounds).items():
        name = f"read_{where}_gb_per_second"
        report.figures[name] = report.add_samples(name, [gigabytes / each for each in seconds])
    for what in ("spill", "restore"):
        unmapped, reachable = (
            statistics.median(report.samples[f"{what}_{mode}_gb_per_second"])
            for mode in ("unmapped", "reachable")
        )
        report.figures[f"{what}_reachable_over_unmapped"] = reachable / unmapped
    report.notes.append(f"{gigabytes:.1f} GB of live memory")
    return report


def _main(what: str, num_bytes: int, rounds: int) -> None:
    if what == "move":
        print(json.dumps(_measure_moves(num_bytes, rounds)))
    elif what == "read":
        _read(num_bytes, rounds)
    elif what == "take":
        _take(num_bytes)
    else:
        print(json.dumps({"can": _ask()}))


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
