"""What the driver's virtual memory calls cost, in microseconds a call, by the size of the handle.

By ctypes on libcuda.so.1, whose own overhead (about a microsecond) is in each. The memory is read
and written by nobody.
"""

from __future__ import annotations

import ctypes
import json
import time
from typing import Any

from benchmarks.device.machine import MIB, device, size
from benchmarks.processes import JobProcess
from benchmarks.report import Report

SIZES_MIB = (2, 20, 32, 64, 256)
CALLS = ("create", "map", "set_access", "unmap", "release")


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Property(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


_DEVICE = _Location(1, 0)  # CU_MEM_LOCATION_TYPE_DEVICE
_READ_WRITE = 3
_PINNED = 1


class _Driver:
    """Calls that raise, and say how long they took."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self.seconds = 0.0

    def __call__(self, name: str, *arguments: Any) -> None:
        function = getattr(self._library, name)
        begun = time.perf_counter()
        code = function(*arguments)
        self.seconds = time.perf_counter() - begun
        if code != 0:
            raise RuntimeError(f"{name} failed with CUDA error {code}")


def _cycle(driver: _Driver, address: ctypes.c_uint64, num_bytes: int) -> dict[str, float]:
    """Seconds of each call of one handle's life."""
    handle = ctypes.c_uint64()
    length = ctypes.c_size_t(num_bytes)
    what = _Property(_PINNED, 0, _DEVICE)
    access = _Access(_DEVICE, _READ_WRITE)
    zero = ctypes.c_uint64(0)
    seen = {}
    driver("cuMemCreate", ctypes.byref(handle), length, ctypes.byref(what), zero)
    seen["create"] = driver.seconds
    driver("cuMemMap", address, length, ctypes.c_size_t(0), handle, zero)
    seen["map"] = driver.seconds
    driver("cuMemSetAccess", address, length, ctypes.byref(access), ctypes.c_size_t(1))
    seen["set_access"] = driver.seconds
    driver("cuMemUnmap", address, length)
    seen["unmap"] = driver.seconds
    driver("cuMemRelease", handle)
    seen["release"] = driver.seconds
    return seen


def _measure(rounds: int) -> dict[str, list[float]]:
    """In a process of the device's: microseconds by "call_sizemib"."""
    driver = _Driver()
    context = ctypes.c_void_p()
    driver("cuInit", 0)
    driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    driver("cuCtxSetCurrent", context)
    seen: dict[str, list[float]] = {}
    for size_mib in SIZES_MIB:
        num_bytes = size_mib * MIB
        address = ctypes.c_uint64()
        length, zero = ctypes.c_size_t(num_bytes), ctypes.c_uint64(0)
        driver("cuMemAddressReserve", ctypes.byref(address), length, zero, zero, zero)
        for number in range(rounds + 3):
            cycle = _cycle(driver, address, num_bytes)
            for name in CALLS if number >= 3 else ():
                seen.setdefault(f"{name}_{size_mib}mib_us", []).append(cycle[name] * 1e6)
        driver("cuMemAddressFree", address, length)
    return seen


def run(*, quick: bool) -> Report:
    """A few seconds."""
    report = Report(name="vmm")
    rounds = 3 if quick else size(100, 3)
    with device() as env, JobProcess(str(rounds), env=env, module=__name__) as job:
        seen = job.say()
    report.figures = {name: report.add_samples(name, values) for name, values in seen.items()}
    return report


if __name__ == "__main__":
    import sys

    print(json.dumps(_measure(int(sys.argv[1]))))
