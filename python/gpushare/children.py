"""Processes that belong to one program, and those that multiprocessing starts anew.

The processes of a program may wait for each other inside an iteration, so the coordinator is told
which belong together.

What multiprocessing starts anew are ranks of ``mp.spawn``, workers of pools or loaders. Such a
process trains, or it prepares data for one that does and should not be a job. Who trains makes a
module; a DataLoader's worker makes none, but for those that its parent's script makes when the
worker imports it.
"""

from __future__ import annotations

import functools
import os
import secrets
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_PROGRAM = "GPUSHARE_PROGRAM"
"""Set by the first process of a program for all that it starts; no setting."""

_callbacks: list[Callable[[], None]] = []


def program() -> str:
    """Returns the name of the program that this process belongs to: its own, or what started it."""
    return os.environ.setdefault(_PROGRAM, f"{os.getpid()}-{secrets.token_hex(4)}")


def is_child() -> bool:
    """Tells whether multiprocessing started this process."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return False
    # The second while it imports its parent's script, before it knows its parent.
    return process.parent_process() is not None or _is_importing_parent()


def is_waiting_for_module() -> bool:
    """Tells whether somebody waits for this process's first module."""
    return bool(_callbacks)


def when_module_is_made(callback: Callable[[], None]) -> None:
    """Calls back just before this process makes its first module."""
    _callbacks.append(callback)
    if len(_callbacks) > 1:
        return
    import torch

    original = torch.nn.Module.__init__

    @functools.wraps(original)
    def first_init(module: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        if _callbacks and not _is_importing_parent():
            # Somebody may have wrapped it after us; then ours stays below, and does nothing.
            outermost: Any = torch.nn.Module.__init__
            if outermost is first_init:
                torch.nn.Module.__init__ = original  # type: ignore[method-assign]
            while _callbacks:
                _callbacks.pop(0)()
        original(module, *args, **kwargs)

    torch.nn.Module.__init__ = first_init  # type: ignore[method-assign, assignment]


def _is_importing_parent() -> bool:
    process = sys.modules["multiprocessing.process"].current_process()
    return bool(getattr(process, "_inheriting", False))
