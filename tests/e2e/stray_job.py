"""A job with a thread that reads memory of a freed activation between iterations."""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from typing import Any

BYTES = 8 << 20


def main() -> None:
    """Iterates until its activation lies in shared memory, and reads there without a lease."""
    import torch

    import gpushare
    from gpushare import _native

    job = gpushare.register(name="stray")
    native: Any = _native.load()
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()
    address = 0
    while native.job_stats()["lane_bytes"] < BYTES:
        job.park()
        with job.iteration():
            address = torch.full((BYTES // 4,), 1.0).data_ptr()
    job.park()
    read: list[bytes] = []
    thread = threading.Thread(target=lambda: read.append(ctypes.string_at(address, 4)))
    thread.start()
    thread.join()
    print(json.dumps({"done": True, "read": read[0].hex()}), flush=True)


if __name__ == "__main__":
    main()
