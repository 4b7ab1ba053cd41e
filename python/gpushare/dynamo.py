"""Keeps torch.compile out of our hooks: neither traced into a graph nor compiled themselves.

``torch.compiler.disable`` would do the same, and import torch._dynamo, which takes a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any


def hide(functions: Iterable[Callable[..., Any]]) -> None:
    """Makes each of these a graph break where traced code calls it, and what it calls run as is."""
    import torch

    # Not in every torch; without it dynamo compiles the hooks like any function, which works.
    frames: Any = torch._C._dynamo.eval_frame
    for function in functions:
        vars(function).update(
            _torchdynamo_disable=True, _torchdynamo_disable_msg="gpushare's boundary"
        )
        if hasattr(frames, "set_code_exec_strategy") and isinstance(function, FunctionType):
            skip = frames._FrameAction.SKIP
            frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))


def step_over(function: Callable[..., Any]) -> None:
    """As ``hide``, but what ``function`` calls may be compiled."""
    import torch

    frames: Any = torch._C._dynamo.eval_frame
    if hasattr(frames, "set_code_exec_strategy") and isinstance(function, FunctionType):
        vars(function).update(
            _torchdynamo_disable=True, _torchdynamo_disable_msg="gpushare's guard"
        )
        action = frames._FrameAction
        strategy = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)
        frames.set_code_exec_strategy(function.__code__, strategy)
