"""Processes that multiprocessing starts anew: ranks of ``mp.spawn``, workers of pools or loaders.

Such a process trains, or it prepares data for one that does and should not be a job. Who trains
makes a module; a DataLoader's worker makes none, but for those that its parent's script makes when
the worker imports it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_callbacks: list[Callable[[], None]] = []


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
