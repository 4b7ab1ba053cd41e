"""Safepoints: places between two top-level blocks of the model where an iteration may stop.

Where a job waits that cannot wait for the end of the iteration, the lease is given up there, in
the forward or the backward, with all memory in place (``csrc/client/safepoint.cpp``). Nothing else
changes: the hooks look at no values, and return nothing. They are those of copies of the model too,
which other threads may call (an average of it, an actor): nothing of theirs is the iteration's, so
they do nothing there.

As in ``hooks.py`` they are plain functions. Traced code (torch.compile, torch.export) leaves them
out: for it is_compiling() is a constant, and nothing of them is left. Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from gpushare import captures

_MOST_LEVELS = 3
"""So deep a list of blocks is looked for: model.encoder.layers, say."""
_LISTS = (torch.nn.Sequential, torch.nn.ModuleList)
_UNHOOKED = (torch.nn.TransformerEncoderLayer, torch.jit.ScriptModule)
"""With a hook on it, or in it, the first computes in another way in evaluation, to other bits. The
second, a script, has no Python hooks."""

_stop: Callable[[bool], bool] | None = None
"""stop(is_in_backward): waits, if the lease is wanted back. Returns whether this thread works on an
iteration that somebody may interrupt. None while no job is watched."""


def attach(model: torch.nn.Module, stop: Callable[[bool], bool]) -> list[Any]:
    """Hooks the model's blocks; returns the handles that remove the hooks."""
    global _stop
    _stop = stop
    handles: list[Any] = []
    for block in blocks_of(model):
        handles.append(block.register_forward_hook(_block_ended))
    return handles


def detach() -> None:
    """Lets hooks that are left in a copy of the model, or in a graph, do nothing."""
    global _stop
    _stop = None


def blocks_of(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Returns the model's blocks, in its order: none where it is a single one.

    They are its children, and the elements of those that are lists (Sequential, ModuleList). A
    child that contains a list of several counts as its own children do.
    """
    while len(children := list(model.children())) == 1:
        model = children[0]
    if isinstance(model, _UNHOOKED):
        return []
    found = dict.fromkeys(_blocks(model, _MOST_LEVELS))
    blocks = [block for block in found if not isinstance(block, _UNHOOKED)]
    return blocks if len(blocks) > 1 else []


def _blocks(module: torch.nn.Module, levels: int) -> Iterator[torch.nn.Module]:
    for child in module.children():
        if isinstance(child, _LISTS):
            yield from child.children()
        elif levels and _has_list(child, levels):
            yield from _blocks(child, levels - 1)
        else:
            yield child


def _has_list(module: torch.nn.Module, levels: int) -> bool:
    return any(
        (isinstance(child, torch.nn.ModuleList) and len(child) > 1 and not _is_unhooked(child))
        or (levels > 1 and _has_list(child, levels - 1))
        for child in module.children()
    )


def _is_unhooked(elements: torch.nn.ModuleList) -> bool:
    return all(isinstance(element, _UNHOOKED) for element in elements)


def _block_ended(_module: torch.nn.Module, args: Any, result: Any) -> None:
    """A safepoint, which has the backward make one where it comes to this block."""
    if torch.compiler.is_compiling() or _stop is None or captures.under_way:
        return
    if not _stop(False):
        return
    if isinstance(result, tuple | list) and result:
        result = result[0]
    # What torch.fx traces with has all attributes.
    if not isinstance(result, torch.Tensor) or _is_transformed():
        return
    # Of the tensor itself a hook would be seen: by pickle, say.
    node = result.grad_fn
    if node is not None and not _is_of_inputs(node, args):
        node.register_prehook(_gradient_comes)


def _gradient_comes(_gradients: Any) -> None:
    if torch.compiler.is_compiling():
        return
    if _stop is not None and not captures.under_way:
        _stop(True)


def _is_of_inputs(node: Any, args: Any) -> bool:
    """Whether the block only passes a tensor on: what made it may last, and have a hook already."""
    return any(isinstance(arg, torch.Tensor) and arg.grad_fn is node for arg in args)


def _is_transformed() -> bool:
    """Whether torch.func is at work, whose tensors stand for others."""
    return torch._C._functorch.peek_interpreter_stack() is not None
