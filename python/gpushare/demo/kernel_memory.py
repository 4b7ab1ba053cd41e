"""What the kernel says about a process's memory: no claim of ours takes part in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

PAGE_BYTES = 4096
Shared = Literal["whole", "part", "none"]
_MAPPING = re.compile(
    rb"^([0-9a-f]+)-[0-9a-f]+ ...(.) .*\n(?:.*\n)*?Rss: *([0-9]+) kB\n(?:Pss: *([0-9]+) kB)?",
    re.MULTILINE,
)


def resident_bytes(pid: int) -> int:
    """Returns the resident memory of a process, 0 once it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def resident_bytes_in(pid: int, first: int, size_bytes: int, *, shared: Shared = "whole") -> int:
    """Returns how much of an address range of a process is resident, 0 once it is gone.

    Args:
        pid: The process.
        first: The range's first address.
        size_bytes: The range's length.
        shared: Of memory that processes share, whether it counts whole; or each process's part of
            it, so that the sum over all of them is what the machine has; or not.
    """
    try:
        smaps = Path(f"/proc/{pid}/smaps").read_bytes()
    except OSError:
        return 0
    return sum_resident(smaps, first, size_bytes, shared=shared)


def is_stopped(pid: int) -> bool:
    """Tells whether all of a process is stopped, or gone."""
    try:
        states = [_state(path) for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:
        return True
    return all(state in "TtZX" for state in states)


def _state(path: Path) -> str:
    try:
        # The name before it is in parentheses and may contain anything.
        return path.read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def sum_resident(smaps: bytes, first: int, size_bytes: int, *, shared: Shared = "whole") -> int:
    """Adds up the resident bytes of the mappings in a range, from the text of ``smaps``."""
    end = first + size_bytes
    return sum(
        int(part if kind == b"s" and shared == "part" else resident) * 1024
        for start, kind, resident, part in _MAPPING.findall(smaps)
        if first <= int(start, 16) < end and not (kind == b"s" and shared == "none")
    )
