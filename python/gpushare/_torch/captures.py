"""CUDA graph captures: while one is under way no lease closes, and none is waited for.

A capture that begins outside of an iteration waits for a lease first, and holds it to its end: what
it allocates belongs to the graph, and must not land where the gap's memory goes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from gpushare._torch.gate import enter_outside_iteration

under_way: set[int] = set()
"""id() of the graphs that are captured now. Read at each boundary: a call would cost more."""
_holding: set[int] = set()
"""Of these, which wait for their end to give the lease back."""


def watch(native: ModuleType) -> None:
    """Tells the compiled module of every capture of torch's. Once a process."""
    import torch

    graph = torch.cuda.CUDAGraph

    def begin(self: Any) -> None:
        if enter_outside_iteration(native):
            _holding.add(id(self))
        under_way.add(id(self))
        native.note_capture(True)

    def end(self: Any) -> None:
        if id(self) not in under_way:
            return
        under_way.discard(id(self))
        native.note_capture(False)
        if id(self) in _holding:
            _holding.discard(id(self))
            native.end_iteration("explicit", False)

    # Of newer versions the first is half of the second; whichever comes first ends it.
    for name in ("capture_end_pre", "capture_end"):
        if hasattr(graph, name):
            setattr(graph, name, _and_then(getattr(graph, name), end))
    graph.capture_begin = _after(begin, end, graph.capture_begin)  # type: ignore[method-assign]


def _after(
    begin: Callable[[Any], None], undo: Callable[[Any], None], method: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        begin(self)
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            undo(self)
            raise

    return wrapper


def _and_then(method: Callable[..., Any], end: Callable[[Any], None]) -> Callable[..., Any]:
    @functools.wraps(method)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        finally:
            end(self)

    return wrapper
