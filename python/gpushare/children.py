"""Processes that belong to one program, and those that multiprocessing starts anew.

The processes of a program may wait for each other inside an iteration, so the coordinator is told
which belong together.

What multiprocessing starts anew are ranks of ``mp.spawn``, workers of pools or loaders. Such a
process trains, or it prepares data for one that does and should not be a job. Who trains makes a
module or steps an optimizer. A DataLoader's worker does neither, but for modules that its parent's
script makes when the worker imports it. A process that is forked is told in the same way.
"""

from __future__ import annotations

import functools
import os
import secrets
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpushare._torch import optimizer_steps

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


def is_waiting_for_training() -> bool:
    """Tells whether somebody waits until this process trains."""
    return bool(_callbacks)


def when_training_begins(callback: Callable[[], None]) -> None:
    """Calls back just before this process makes a module or steps an optimizer.

    A model may come from another process by pickle, which makes no module here.
    """
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
            _call_back()
        original(module, *args, **kwargs)

    torch.nn.Module.__init__ = first_init  # type: ignore[method-assign, assignment]
    optimizer_steps.watch_steps()
    optimizer_steps.around = _first_step


def _first_step(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    _call_back()
    around = optimizer_steps.around  # that of who was called back
    return step(*args, **kwargs) if around is None else around(step, *args, **kwargs)


def _call_back() -> None:
    if optimizer_steps.around is _first_step:
        optimizer_steps.around = None
    while _callbacks:
        _callbacks.pop(0)()


def _is_importing_parent() -> bool:
    process = sys.modules["multiprocessing.process"].current_process()
    return bool(getattr(process, "_inheriting", False))
