"""Times the driver's virtual memory calls as the product makes them, in microseconds a call.

The calls go through ctypes to libcuda.so.1. Each figure includes the overhead of ctypes, about a
microsecond. Nobody reads or writes the memory. The words in a figure's name mean:

- `4mib`: a handle of the device's memory, which can be exported as a file, as all handles of the
  product can (csrc/vm/cuda/cuda_chunks.h). `4mib_plain`: a handle that cannot be exported.
- `run`: a run of eight handles of 2 MiB, each mapped alone, then one call for all of them.
- `alias`: the same handle at a second address, which restored memory has for a moment.
- `host_2mib`: a handle of memory of the host that the device can use in place. The host tier is
  made of such handles. `host_shown_2mib`: 16 MiB of them at addresses of the device.
- `memfd`: the other host tier, registered in pieces of 16 MiB.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
from collections.abc import Callable

from benchmarks.device.driver import Driver
from benchmarks.device.machine import MIB, device, size
from benchmarks.processes import JobProcess
from benchmarks.report import Report

SIZES_MIB = (2, 4, 8, 16)
"""The sizes of a chunk and of pieces, up to the product's largest piece."""
PLAIN_SIZES_MIB = (2, 16)
HOST_SIZES_MIB = (2, 4, 16, 64)
"""The sizes of a handle of the host's memory. The product has a handle a chunk."""
CHUNK_BYTES = 2 * MIB
RUN_CHUNKS = 8
PIECE_BYTES = 16 * MIB
WARM_UP = 3
Seen = dict[str, float]
"""The seconds of one round, by what was timed."""


def _handle(driver: Driver, address: int, num_bytes: int, *, has_file: bool) -> Seen:
    """Times each call in one handle's life."""
    handle = driver.create(num_bytes, has_file=has_file)
    return {
        "create": driver.seconds,
        "map": driver.map(address, num_bytes, handle),
        "set_access": driver.allow(address, num_bytes),
        "unmap": driver.unmap(address, num_bytes),
        "release": driver.release(handle),
    }


def _run_of(
    driver: Driver, address: int, handles: list[int], name: str, each_bytes: int = CHUNK_BYTES
) -> Seen:
    """Maps handles side by side, one by one; makes them accessible and unmaps them together."""
    num_bytes = len(handles) * each_bytes
    mapped = [
        driver.map(address + number * each_bytes, each_bytes, handle)
        for number, handle in enumerate(handles)
    ]
    return {
        f"map_each_{name}": sum(mapped) / len(mapped),
        f"set_access_{name}": driver.allow(address, num_bytes),
        f"unmap_{name}": driver.unmap(address, num_bytes),
    }


def _alias(driver: Driver, address: int) -> Seen:
    handle = driver.create(PIECE_BYTES)
    driver.map(address, PIECE_BYTES, handle)
    driver.allow(address, PIECE_BYTES)
    other = address + PIECE_BYTES
    seen = {
        "map_alias": driver.map(other, PIECE_BYTES, handle),
        "set_access_alias": driver.allow(other, PIECE_BYTES),
        "unmap_alias": driver.unmap(other, PIECE_BYTES),
    }
    driver.unmap(address, PIECE_BYTES)
    driver.release(handle)
    return seen


def _host_handle(driver: Driver, address: int, num_bytes: int, node: int) -> Seen:
    handle = driver.create(num_bytes, host_node=node)
    return {
        "create_host": driver.seconds,
        "map_host": driver.map(address, num_bytes, handle),
        "set_access_host": driver.allow(address, num_bytes, node),
        "unmap_host": driver.unmap(address, num_bytes),
        "release_host": driver.release(handle),
    }


def _host_handles(
    driver: Driver, address: int, node: int, rounds: int, seen: dict[str, list[float]]
) -> None:
    """Measures handles of the host's memory of each size, made and shown to the device."""
    for size_mib in HOST_SIZES_MIB:
        num_bytes = size_mib * MIB
        suffix = f"_{size_mib}mib"
        _repeat(
            seen,
            rounds,
            suffix,
            lambda: _host_handle(driver, address, num_bytes, node),  # noqa: B023
        )
        handles = [
            driver.create(num_bytes, host_node=node)
            for _ in range(max(1, PIECE_BYTES // num_bytes))
        ]
        _repeat(
            seen,
            rounds,
            suffix,
            lambda: _run_of(driver, address, handles, "host_shown", num_bytes),  # noqa: B023
        )
        for handle in handles:
            driver.release(handle)


def _memfd(driver: Driver) -> Seen:
    file = os.memfd_create("bench_vmm")
    os.ftruncate(file, PIECE_BYTES)
    with mmap.mmap(file, PIECE_BYTES, mmap.MAP_SHARED) as memory:
        view = ctypes.c_char.from_buffer(memory)
        address = ctypes.addressof(view)
        ctypes.memset(address, 1, PIECE_BYTES)
        seen = {"register_memfd": driver.register(address, PIECE_BYTES)}
        seen["unregister_memfd"] = driver.unregister(address)
        del view  # or the mapping cannot be closed
    os.close(file)
    return seen


def _repeat(
    seen: dict[str, list[float]], rounds: int, suffix: str, what: Callable[[], Seen]
) -> None:
    for number in range(rounds + WARM_UP):
        for name, seconds in what().items():
            if number >= WARM_UP:
                seen.setdefault(f"{name}{suffix}_us", []).append(seconds * 1e6)


def _measure(rounds: int) -> dict[str, list[float]]:
    """Measures in a process that uses the device; returns microseconds by figure."""
    driver = Driver()
    address = driver.reserve(max(2 * PIECE_BYTES, HOST_SIZES_MIB[-1] * MIB))
    seen: dict[str, list[float]] = {}
    for has_file, suffix, sizes in ((True, "", SIZES_MIB), (False, "_plain", PLAIN_SIZES_MIB)):
        for size_mib in sizes:
            _repeat(
                seen,
                rounds,
                f"_{size_mib}mib{suffix}",
                lambda: _handle(driver, address, size_mib * MIB, has_file=has_file),  # noqa: B023
            )
    handles = [driver.create(CHUNK_BYTES) for _ in range(RUN_CHUNKS)]
    _repeat(seen, rounds, "", lambda: _run_of(driver, address, handles, "run"))
    _repeat(seen, rounds, "", lambda: _alias(driver, address))
    _repeat(seen, rounds, "", lambda: _memfd(driver))
    if (node := driver.host_node()) is not None and os.environ.get("GPUSHARE_REACHABLE") != "off":
        _host_handles(driver, address, node, rounds, seen)
    return seen


def run(*, quick: bool) -> Report:
    """Measures all calls, in a few seconds."""
    report = Report(name="vmm")
    rounds = 3 if quick else size(100, 3)
    with device() as env, JobProcess(str(rounds), env=env, module=__name__) as job:
        seen = job.say()
    report.figures = {name: report.add_samples(name, values) for name, values in seen.items()}
    if not any("host" in name for name in seen):
        report.notes.append("memory of the host cannot be used in place here, or is not to be")
    return report


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]))))
