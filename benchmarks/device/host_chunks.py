"""A part of the device suite: finds out whether spilled memory can stay reachable here.

`python -m benchmarks.device.host_chunks FILE` writes {"can_reach": ..., "why": ...}. The device's
attribute alone does not say it: in a container, for example, the driver may refuse each chunk. The
probe therefore makes chunks as the host tier does (csrc/vm/cuda/cuda_host_memory.cpp) and writes to
them on the CPU. It copies between the chunks and the device, over several chunks in one copy, and
shows the chunks to the device at addresses of its own. A refusal, a wrong byte or a fault is a
failure of the part.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.device.driver import Driver, DriverError
from benchmarks.device.machine import MIB, device
from benchmarks.processes import JobProcess

MODULE = "benchmarks.device.host_chunks"
CHUNK_BYTES = 2 * MIB
NUM_CHUNKS = 9
"""One more than a piece of the product (16 MiB) has, and so more than one piece."""


def _probe() -> dict[str, Any]:
    """Returns what the probe found, in a process that uses the device."""
    driver = Driver()
    node = driver.host_node()
    if node is None:
        return {"can_reach": False, "why": "the device cannot use memory of the host in place"}
    try:
        _use_chunks(driver, node)
    except DriverError as error:
        return {"can_reach": False, "why": str(error), "is_refused": True}
    return {"can_reach": True, "why": ""}


def _use_chunks(driver: Driver, node: int) -> None:
    num_bytes = NUM_CHUNKS * CHUNK_BYTES
    tier = driver.reserve(num_bytes)
    handles = [driver.create(CHUNK_BYTES, host_node=node) for _ in range(NUM_CHUNKS)]
    for number, handle in enumerate(handles):
        at = tier + number * CHUNK_BYTES
        driver.map(at, CHUNK_BYTES, handle)
        driver.allow(at, CHUNK_BYTES, node)
    memory = driver.reserve(2 * num_bytes)
    resident = driver.create(num_bytes)
    driver.map(memory, num_bytes, resident)
    driver.allow(memory, num_bytes)
    stream = driver.stream()
    _fill(tier, 1)
    driver.copy_in(memory, tier, num_bytes, stream)
    _fill(tier, 0)
    driver.copy_out(tier, memory, num_bytes, stream)
    _expect(tier, 1, "copied out over several chunks")
    shown = memory + num_bytes
    for number, handle in enumerate(handles):
        driver.map(shown + number * CHUNK_BYTES, CHUNK_BYTES, handle)
    driver.allow(shown, num_bytes)
    _fill(tier, 2)
    size = ctypes.c_size_t(num_bytes)
    driver("cuMemcpyDtoD_v2", ctypes.c_uint64(memory), ctypes.c_uint64(shown), size)
    driver("cuCtxSynchronize")
    _fill(tier, 0)
    driver.copy_out(tier, memory, num_bytes, stream)
    _expect(tier, 2, "read by the device where they are shown")
    driver.unmap(shown, num_bytes)


def _fill(tier: int, seed: int) -> None:
    """Writes other bytes to each chunk, or zeros if the seed is 0."""
    for number in range(NUM_CHUNKS):
        value = 16 * seed + number if seed else 0
        ctypes.memset(tier + number * CHUNK_BYTES, value, CHUNK_BYTES)


def _expect(tier: int, seed: int, what: str) -> None:
    for number in range(NUM_CHUNKS):
        found = ctypes.string_at(tier + number * CHUNK_BYTES, CHUNK_BYTES)
        if found != bytes([16 * seed + number]) * CHUNK_BYTES:
            raise DriverError(f"chunks of the host tier have wrong bytes when they are {what}")


def main() -> None:
    """Probes in another process; the exit status is 1 if the driver refused what it promises."""
    with device() as env, JobProcess("probe", env=env, module=MODULE) as job:
        found = job.say()
    Path(sys.argv[1]).write_text(json.dumps(found) + "\n")
    if found.get("is_refused"):
        raise SystemExit(f"memory of the host cannot be used in place: {found['why']}")


if __name__ == "__main__":
    if sys.argv[1] == "probe":
        print(json.dumps(_probe()))
    else:
        main()
