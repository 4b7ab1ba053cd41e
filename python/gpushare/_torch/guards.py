"""Watches what ends an iteration and is no call of a module or an optimizer.

Each function here wraps one thing of torch or Python, and returns what undoes it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Tell = Callable[[], None]


def guard_backward(guard: Callable[[Any], Any]) -> Callable[[], None]:
    """Tells when an exception leaves autograd's engine, for which torch has no hook.

    guard(engine) is a function that calls the engine and tells.

    ``backward`` and ``grad`` of all kinds come together in one function; where a torch does not
    have it, ``torch.autograd.backward`` is the next best.
    """
    import torch

    autograd: Any = torch.autograd
    name = "_engine_run_backward" if hasattr(autograd, "_engine_run_backward") else "backward"
    engine = getattr(autograd, name)
    run = guard(engine)
    setattr(autograd, name, run)

    def restore() -> None:
        # Somebody may have wrapped it after us; then ours stays below, and tells nobody.
        if getattr(autograd, name) is run:
            setattr(autograd, name, engine)

    return restore


def watch_scaler(tell: Tell) -> Callable[[], None]:
    """Tells when a GradScaler has been updated."""
    from torch.amp.grad_scaler import GradScaler

    update = GradScaler.update

    def update_and_tell(scaler: GradScaler, *args: Any, **kwargs: Any) -> None:
        update(scaler, *args, **kwargs)
        tell()

    update_and_tell.__doc__ = update.__doc__
    GradScaler.update = update_and_tell  # type: ignore[method-assign, assignment]

    def restore() -> None:
        # Somebody may have wrapped it after us; then ours stays below, and does nothing.
        if GradScaler.update is update_and_tell:
            GradScaler.update = update  # type: ignore[method-assign]

    return restore


def watch_excepthook(tell: Tell) -> Callable[[], None]:
    """Tells when nobody catches an exception."""
    report = sys.excepthook

    def tell_and_report(*error: Any) -> None:
        # First: the traceback may be long in coming, and others need not wait for it.
        tell()
        report(*error)

    sys.excepthook = tell_and_report

    def restore() -> None:
        if sys.excepthook is tell_and_report:
            sys.excepthook = report

    return restore
