"""Safepoints: places between two top-level blocks of the model where an iteration may stop.

Where a job waits that cannot wait for the end of the iteration, the lease is given up there, in
the forward or the backward, with all memory in place (``csrc/client/gate/safepoint.cpp``). Nothing
else changes: no values are looked at. Other threads may call a block too (of a teacher, an actor):
nothing of theirs is the iteration's, so nothing is done there. Compiled code has no safepoints.
Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from gpushare import _native
from gpushare._torch import captures, dynamo, module_calls

_MOST_LEVELS = 3
"""So deep a list of blocks is looked for: model.encoder.layers, say."""
_LISTS = (torch.nn.Sequential, torch.nn.ModuleList)
_stop: Callable[[bool], bool] | None = None
"""stop(is_in_backward): waits, if the lease is wanted back. Returns whether this thread works on an
iteration that somebody may interrupt. None while no job is watched."""


def attach(model: torch.nn.Module, stop: Callable[[bool], bool]) -> Callable[[], None]:
    """Watches the model's blocks; returns what ends that."""
    global _stop
    _stop = stop
    dynamo.hide([_block_ended, _gradient_comes])
    call_block = _native.load().watch_blocks(_block_ended)
    undo = [module_calls.watch(block, call_block) for block in blocks_of(model)]

    def detach() -> None:
        global _stop
        _stop = None
        for each in undo:
            each()

    return detach


def blocks_of(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Returns the model's blocks, in its order: none where it is a single one.

    They are its children, and the elements of those that are lists (Sequential, ModuleList). A
    child that contains a list of several counts as its own children do.
    """
    while len(children := list(model.children())) == 1:
        model = children[0]
    blocks = list(dict.fromkeys(_blocks(model, _MOST_LEVELS)))
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
        (isinstance(child, torch.nn.ModuleList) and len(child) > 1)
        or (levels > 1 and _has_list(child, levels - 1))
        for child in module.children()
    )


def _block_ended(args: Any, result: Any) -> None:
    """A safepoint, which has the backward make one where it comes to this block."""
    if _stop is None or captures.under_way:
        return
    if not _stop(False):
        return
    if isinstance(result, tuple | list) and result:
        result = result[0]
    # What torch.fx traces with has all attributes.
    if not isinstance(result, torch.Tensor) or _is_transformed():
        return
    # A hook of the tensor itself would be seen: by pickle, say.
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
