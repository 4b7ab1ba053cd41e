"""Calls of compiled functions, seen from outside: inside them there is nothing of ours.

A function that ``torch.compile`` made may contain the model's forward and an optimizer's step (a
whole training step, say), whose calls nobody sees: traced code is torch's own. So what
``torch.compile`` makes of a function is wrapped. That an optimizer steps in it is noted when it is
traced. Compiled modules need no wrapper (``module_calls.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gpushare._torch import dynamo

Around = Callable[..., Any]

_MARK = "_gpushare_compile"


class Compiled:
    """What is known of a compiled function."""

    __slots__ = ("has_step",)

    def __init__(self) -> None:
        """Nothing, before it is traced."""
        self.has_step = False


around: Around | None = None
"""around(compiled, function, *args, **kwargs), while a job is watched: calls the function."""
_called: Compiled | None = None
"""The one that runs, the outermost."""


def watch_compile() -> None:
    """Wraps what ``torch.compile`` makes from now on. Costs nothing where no job is watched."""
    import torch

    stock = torch.compile
    if getattr(stock, _MARK, False):
        return

    @functools.wraps(stock)
    def compile_and_wrap(*args: Any, **kwargs: Any) -> Any:
        made = stock(*args, **kwargs)
        # Without a model it is a decorator, which comes back here.
        is_compiled = hasattr(made, "_torchdynamo_orig_callable")
        return made if isinstance(made, torch.nn.Module) or not is_compiled else _wrapped(made)

    setattr(compile_and_wrap, _MARK, True)
    torch.compile = compile_and_wrap


def note_step() -> None:
    """An optimizer's step is traced: dynamo runs this then, and takes its result for a constant."""
    if _called is not None:
        _called.has_step = True


note_step._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    compiled = Compiled()

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        global _called
        if _called is not None:
            return function(*args, **kwargs)
        _called = compiled
        try:
            if around is None:
                return function(*args, **kwargs)
            return around(compiled, function, *args, **kwargs)
        finally:
            _called = None

    # Dynamo takes a wrapper with another's number for one that it does not know.
    call._torchdynamo_wrapper_id = id(call)  # type: ignore[attr-defined]
    dynamo.step_over(call)
    return call
