"""Sees the exceptions that leave autograd's engine, for which torch has no hook."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Tell = Callable[[], None]


def guard_backward(tell: Tell) -> Callable[[], None]:
    """Tells when anything leaves autograd's engine; returns what undoes it.

    ``backward`` and ``grad`` of all kinds come together in one function; where a torch does not
    have it, ``torch.autograd.backward`` is the next best.
    """
    import torch

    autograd: Any = torch.autograd
    name = "_engine_run_backward" if hasattr(autograd, "_engine_run_backward") else "backward"
    engine = getattr(autograd, name)

    @functools.wraps(engine)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return engine(*args, **kwargs)
        except BaseException:
            tell()
            raise

    setattr(autograd, name, run)

    def restore() -> None:
        # Somebody may have wrapped it after us; then ours stays below, and tells nobody.
        if getattr(autograd, name) is run:
            setattr(autograd, name, engine)

    return restore
