"""Finds what a campaign leaves behind: processes, files, shared memory, mounts, descriptors."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

_MAY_STAY = {
    "sock.lock",
    "sock.profiles",
    "sock.profiles.damaged",
    "coordinator.log",
    "coordinator.log.1",
}
"""The lock is never removed, on purpose; profiles and log are for the next coordinator."""


def left_behind(folder: Path, runtime: Path, spill_dir: Path) -> list[str]:
    """Whatever is still there after all has ended in order, and should not be.

    Args:
        folder: The campaign's folder. No process has a file open below it, or names it on its
            command line. Jobs write their stderr there.
        runtime: The folder of the coordinator's socket.
        spill_dir: The folder for spilled memory.
    """
    found = []
    for pid in _processes_with(str(folder)):
        found.append(f"process {pid}: {_read(Path(f'/proc/{pid}/cmdline'))!r}")
    found += [f"file {path}" for path in runtime.iterdir() if path.name not in _MAY_STAY]
    found += [f"file {path}" for path in spill_dir.iterdir()]
    found += [f"shared memory {path}" for path in Path("/dev/shm").glob("*gpushare*")]
    return found


def own_memory() -> Counter[str]:
    """Shared memory that this process has open. Whoever runs a campaign may have some before."""
    links = [link for link in _open_files(os.getpid()) if "memfd:gpushare" in link]
    return Counter(f"descriptor of this process: {link}" for link in links)


def coordinators_left(folder: Path, pids: Iterable[int]) -> list[int]:
    """The coordinators that live, since a number may be another process's by now."""
    return [pid for pid in pids if str(folder).encode() in _read(Path(f"/proc/{pid}/cmdline"))]


def mounts_below(folder: Path) -> list[str]:
    """The file systems that are mounted there."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line for line in lines if str(folder) in line.split()[1]]


def _processes_with(folder: str) -> list[int]:
    """Other processes that use it; a forked one has the command line of its parent."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        pid = int(path.name)
        is_named = folder.encode() in _read(path / "cmdline")
        if pid != os.getpid() and (is_named or any(folder in link for link in _open_files(pid))):
            found.append(pid)
    return found


def _open_files(pid: int) -> list[str]:
    """The files that a process has open; none if it has ended, or is not ours."""
    links = []
    with contextlib.suppress(OSError):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed since
                links.append(str(path.readlink()))
    return links


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended, or is not ours
        return b""
