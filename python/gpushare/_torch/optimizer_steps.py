"""Sends the steps of all torch optimizers through a function of ours; none of them shows it.

torch wraps the ``step`` of each optimizer's class once, where the first instance is made, and marks
it as hooked. We wrap what is marked, in the class: so instances, and what is pickled of them, are
as without us. Compiled code has torch's own step.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gpushare._torch import compiled, dynamo

if TYPE_CHECKING:
    import torch

Around = Callable[..., Any]

around: Around | None = None
"""around(step, optimizer, ...), while a job is watched: calls ``step(optimizer, ...)``."""

_MARK = "_gpushare_step"


def watch_steps() -> None:
    """Wraps the steps of all optimizers, once. Costs next to nothing where no job is watched.

    A learning rate scheduler puts a wrapper of the step that it finds into its optimizer. Where one
    was made before, that step is wrapped too.
    """
    import torch

    optimizer_class: Any = torch.optim.Optimizer
    profile_hook_step = optimizer_class.profile_hook_step
    if hasattr(profile_hook_step, _MARK):
        return

    def hook_and_wrap(step: Callable[..., Any]) -> Callable[..., Any]:
        return _wrapped(profile_hook_step(step))

    setattr(hook_and_wrap, _MARK, True)
    hooked = [
        each
        for each in _classes(optimizer_class)
        if getattr(vars(each).get("step"), "hooked", False)
    ]
    for each in hooked:
        each.step = _wrapped(each.step)
    if hooked:  # there may be instances, as in a notebook whose later cell imports gpushare
        _wrap_instances(optimizer_class)
    optimizer_class.profile_hook_step = staticmethod(hook_and_wrap)


def _wrap_instances(optimizer_class: Any) -> None:
    """Wraps what schedulers have put into optimizers: functions that know their optimizer."""
    for each in gc.get_objects():
        if issubclass(type(each), optimizer_class) and "step" in vars(each):
            vars(each)["step"] = _wrapped_of(each, vars(each)["step"])


def _wrapped_of(optimizer: torch.optim.Optimizer, step: Callable[..., Any]) -> Callable[..., Any]:
    reference = weakref.ref(optimizer)
    wrapped = _wrapped(functools.wraps(step)(lambda _, *args, **kwargs: step(*args, **kwargs)))

    @functools.wraps(step)
    def call(*args: Any, **kwargs: Any) -> Any:
        return wrapped(reference(), *args, **kwargs)

    dynamo.step_over(call)
    return call


def _classes(top: Any) -> Iterator[Any]:
    """Yields all classes of optimizers, without Optimizer itself."""
    for each in top.__subclasses__():
        yield each
        yield from _classes(each)


def _wrapped(stock: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    # A constant for traced code, and quick elsewhere: this runs with cold caches. An export, which
    # runs the program, is the compiled module's to see.
    is_traced = torch.compiler.is_dynamo_compiling

    @functools.wraps(stock)
    def step(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
        if is_traced():
            compiled.note_step()
            return stock(optimizer, *args, **kwargs)
        if around is None:
            return stock(optimizer, *args, **kwargs)
        return around(stock, optimizer, *args, **kwargs)

    dynamo.step_over(step)
    return step
