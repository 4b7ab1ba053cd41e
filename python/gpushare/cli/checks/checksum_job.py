"""Run as a process by the doctor: spills and restores a tensor, and says what became of it."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch

from gpushare import _install, _native
from gpushare._settings import config
from gpushare._settings.devices import CPU
from gpushare._torch.recorder import hash_tensor

NUM_BYTES = 256 << 20
_CHUNK_BYTES = 2 << 20


def main() -> None:
    """Writes one JSON object to standard output."""
    _install.install()
    cuda = None
    if _native.device() != CPU:
        torch.cuda.set_device(_native.cuda_index())
        cuda = examine_cuda()
    print(json.dumps(check() | {"cuda": cuda}))


def examine_cuda() -> dict[str, Any]:
    """Looks at the CUDA device that this process shares, and at what is between it and torch."""
    info = _native.load().cuda_device_info(_native.cuda_index())
    return {
        "device": _native.device(),
        "name": info["name"],
        "total_bytes": info["total_bytes"],
        "driver": info["driver_version"],
        "torch_cuda": torch.version.cuda,
        "can_reach_spilled": info["can_reach_spilled"] and config.load().reachable != "off",
        "is_intact": _native.load().segment_plugin_is_intact(),
    }


def num_bytes() -> int:
    """A part of a device that others may use, and of what the settings allow a job."""
    if _native.device() == CPU:
        settings = config.load()
        limits = [size for size in (settings.capacity_bytes, settings.memory_limit_bytes) if size]
        part = min(limits, default=2 * NUM_BYTES) // 2 // _CHUNK_BYTES * _CHUNK_BYTES
        return min(NUM_BYTES, max(part, _CHUNK_BYTES))
    free, _total = torch.cuda.mem_get_info()
    return min(NUM_BYTES, free // 4 // _CHUNK_BYTES * _CHUNK_BYTES)


def check() -> dict[str, Any]:
    """Spills a tensor and brings it back.

    Returns:
        Where it lay, whether its bytes are the same, and how long moving them took.
    """
    native = _native.load()
    tensor = torch.arange(num_bytes() // 8, dtype=torch.int64)
    if _native.device() != CPU:
        tensor = tensor.cuda()
    first, size_bytes = native.reserved_range()
    before, address = hash_tensor(tensor), tensor.data_ptr()
    spilled_before = native.job_stats()["spilled_total_bytes"]
    begin = time.monotonic()
    native.spill_and_restore()
    seconds = time.monotonic() - begin
    return {
        "torch": torch.__version__,
        "built_for_torch": native.BUILT_FOR_TORCH,
        "is_live": first <= address < first + size_bytes,
        "has_same_address": tensor.data_ptr() == address,
        "has_same_bytes": hash_tensor(tensor) == before,
        "spilled_bytes": native.job_stats()["spilled_total_bytes"] - spilled_before,
        "seconds": seconds,
        "python": sys.version.split()[0],
    }


if __name__ == "__main__":
    main()
