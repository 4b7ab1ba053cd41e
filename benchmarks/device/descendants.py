"""Ends all processes that a part of the device suite started, also those that have left it.

`torchrun` gives its workers a session each, and a coordinator detaches itself from its parent: a
signal to the part's process group reaches neither. Both would keep device memory, and spoil the
figures of the parts after it. The suite is therefore a subreaper (prctl(2)): a process whose parent
has ended becomes the suite's own child, so everything below the suite can be found and ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

# <linux/prctl.h>
_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Makes this process the parent of every process below it whose own parent ends.

    Raises:
        OSError: The kernel refuses.
    """
    if _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(code)}")


def begin_part() -> None:
    """Gives a part's process its own process group, before it runs, and lets it end with the suite.

    A session of its own is not used: a machine may end only the processes of the suite's session.
    """
    os.setpgid(0, 0)
    _libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def end_all(seconds: float) -> list[str]:
    """Ends everything below this process; returns what it was, as "name (pid)".

    Processes that are not gone after so many seconds, since the driver keeps them, are named as
    such and left.

    Precondition: no child of this process is waited for elsewhere.
    """
    ended: dict[int, str] = {}
    deadline = time.monotonic() + seconds
    while True:
        alive = _below_this_process()
        if not alive:
            return list(ended.values())
        if time.monotonic() > deadline:
            return [f"{text}: STILL THERE" if pid in alive else text for pid, text in ended.items()]
        for pid, name in alive.items():
            ended.setdefault(pid, f"{name} ({pid})")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _below_this_process() -> dict[int, str]:
    """Returns names of living descendants by pid, and waits for descendants that have ended."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    ended: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name is in parentheses and may contain anything.
            head, _, tail = path.read_text(errors="replace").rpartition(")")
        except OSError:
            continue
        pid = int(path.parent.name)
        state, parent = tail.split()[:2]
        parents[pid] = int(parent)
        names[pid] = head.partition("(")[2]
        if state in "ZX":
            ended.add(pid)
    below: set[int] = set()
    newest = {os.getpid()}
    while newest:
        newest = {pid for pid, parent in parents.items() if parent in newest}
        below |= newest
    for pid in below & ended:
        if parents[pid] == os.getpid():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    return {pid: names[pid] for pid in below - ended}
