"""A part of the device suite: makes a virtual machine have the memory that the host tier needs.

`python -m benchmarks.device.host_memory GIB FILE` writes to so much memory, a GiB at a time, and
puts how much it wrote to into FILE: {"touched_gib": N, "total_gib": N}. Some virtual machines start
with little memory and get more as they use it. The coordinator's default for the host tier is half
of the memory that the machine has when the coordinator starts. The part stops when no memory is
available and none is added, and after half a minute.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

GIB = 1 << 30
KEPT_FREE_GIB = 1.5
PATIENCE_SECONDS = 4.0
MOST_SECONDS = 30.0
THREADS = min(8, os.cpu_count() or 1)


def _meminfo_gib(key: str) -> float:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024 / GIB
    raise ValueError(f"/proc/meminfo has no {key}")


def _has_room(needed_gib: float) -> bool:
    """Returns whether so much memory is available, or soon is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _meminfo_gib("MemAvailable") < needed_gib + KEPT_FREE_GIB:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def touch(wanted_gib: int) -> int:
    """Writes to memory; returns how many GiB there were time and room for."""
    kept: list[mmap.mmap] = []
    deadline = time.monotonic() + MOST_SECONDS
    with ThreadPoolExecutor(THREADS) as pool:
        while len(kept) < wanted_gib and time.monotonic() < deadline:
            count = min(THREADS, wanted_gib - len(kept))
            while count > 0 and not _has_room(count):
                count //= 2
            if count == 0:
                break
            new = [mmap.mmap(-1, GIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(count)]
            list(pool.map(_write_to, new))  # list(): errors are seen
            kept += new
    return len(kept)


def _write_to(memory: mmap.mmap) -> None:
    with contextlib.suppress(OSError):  # a kernel without large pages: slower
        memory.madvise(mmap.MADV_HUGEPAGE)
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 1, len(memory))


def main() -> None:
    """Writes the numbers to the file and to stdout."""
    if Path("/proc/self/oom_score_adj").exists():
        # If the machine runs out of memory, the kernel ends this process and no other.
        Path("/proc/self/oom_score_adj").write_text("1000")
    found = {"touched_gib": touch(int(sys.argv[1])), "total_gib": round(_meminfo_gib("MemTotal"))}
    print(json.dumps(found))
    Path(sys.argv[2]).write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
