"""Run as a process by the doctor: spills and restores a tensor, and says what became of it."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch

from gpushare import _native
from gpushare.recorder import hash_tensor

NUM_BYTES = 256 << 20


def main() -> None:
    """Writes one JSON object to standard output."""
    _native.install()
    print(json.dumps(check()))


def check() -> dict[str, Any]:
    """Spills a tensor and brings it back.

    Returns:
        Where it lay, whether its bytes are the same, and how long moving them took.
    """
    native = _native.load()
    tensor = torch.arange(NUM_BYTES // 8, dtype=torch.int64)
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
