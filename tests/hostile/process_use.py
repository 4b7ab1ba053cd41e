"""The resources that a process holds, as the kernel counts them."""

from __future__ import annotations

import re
from pathlib import Path


def num_descriptors(pid: int) -> int:
    """How many descriptors the process has open.

    Raises:
        OSError: The process has ended.
    """
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def resident_bytes(pid: int) -> int:
    """How much of the process's memory is resident.

    Raises:
        OSError: The process has ended.
    """
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    if found is None:
        raise ProcessLookupError(f"process {pid} has ended and was not yet waited for")
    return int(found[1]) * 1024
