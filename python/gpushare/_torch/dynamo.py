"""Keeps torch.compile out of our functions that run around its code.

``torch.compiler.disable`` would do that, and import torch._dynamo, which takes a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any


def hide(functions: Iterable[Callable[..., Any]]) -> None:
    """Has each of these, and what it calls, run as it is below code that is being compiled."""
    _set_strategy(functions, is_recursive=True)


def step_over(function: Callable[..., Any]) -> None:
    """As ``hide``, but what ``function`` calls may be compiled."""
    _set_strategy([function], is_recursive=False)


def _set_strategy(functions: Iterable[Callable[..., Any]], *, is_recursive: bool) -> None:
    import torch

    # Not in every torch; without it dynamo compiles our functions like any, which works.
    frames: Any = torch._C._dynamo.eval_frame
    if not hasattr(frames, "set_code_exec_strategy"):
        return
    action = frames._FrameAction
    strategy = frames._FrameExecStrategy(
        action.SKIP, action.SKIP if is_recursive else action.DEFAULT
    )
    for function in functions:
        if isinstance(function, FunctionType):
            frames.set_code_exec_strategy(function.__code__, strategy)
