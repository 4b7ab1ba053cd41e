"""Sees the exceptions that torch's hooks do not see: of a forward, a backward, an optimizer's step.

torch calls a forward hook for an Exception but not for a KeyboardInterrupt, and no hook at all when
a backward or a step raises. So each of these calls gets a ``try`` around it, which tells and raises
again. Each function here returns what undoes it.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpushare import dynamo

if TYPE_CHECKING:
    import torch

Tell = Callable[[], None]
_CALL = "_compiled_call_impl"
_MARK = "_gpushare_guard"


def guard_call(model: torch.nn.Module, tell: Tell) -> Callable[[], None]:
    """Tells when something that is no Exception leaves a call of this module.

    The guard stands where ``Module.compile`` puts a call of its own: on the instance, and torch
    keeps that place out of copies and pickles.
    """
    reference = weakref.ref(model)
    before = vars(model).get(_CALL)

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if before is not None:
                return before(*args, **kwargs)
            # A replica has our guard with the rest of the model's __dict__, and calls itself.
            caller: Any = sys._getframe(1).f_locals.get("self")
            module: Any = caller if hasattr(caller, "_call_impl") else reference()
            return module._call_impl(*args, **kwargs)
        except Exception:
            raise  # the forward hook has seen it
        except BaseException:
            tell()
            raise

    dynamo.step_over(call)
    vars(model)[_CALL] = call

    def restore() -> None:
        owner = reference()
        if owner is None or vars(owner).get(_CALL) is not call:
            return
        del vars(owner)[_CALL]
        if before is not None:
            vars(owner)[_CALL] = before

    return restore


def guard_backward(tell: Tell) -> Callable[[], None]:
    """Tells when anything leaves autograd's engine.

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


def is_step_guarded(optimizer: torch.optim.Optimizer) -> bool:
    """Tells whether ``guard_step`` had this optimizer."""
    return _MARK in vars(optimizer)


def guard_step(optimizer: torch.optim.Optimizer, tell: Tell) -> Callable[[], None]:
    """Tells when anything leaves this optimizer's step.

    As learning rate schedulers do it: a ``step`` on the instance, which no copy or pickle has.
    """
    attributes = vars(optimizer)
    before = attributes.get("step")
    method: Any = type(optimizer).step

    reference = weakref.ref(optimizer)

    @functools.wraps(method if before is None else before)
    def step(*args: Any, **kwargs: Any) -> Any:
        try:
            return before(*args, **kwargs) if before else method(reference(), *args, **kwargs)
        except BaseException:
            tell()
            raise

    @functools.wraps(step)
    def function(_self: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
        return step(*args, **kwargs)

    # Schedulers ask the method for its function. A method itself would be a reference cycle.
    step.__func__ = function  # type: ignore[attr-defined]
    attributes["step"] = step
    attributes[_MARK] = True

    def restore() -> None:
        owner = reference()
        if owner is None or vars(owner).get("step") is not step:
            return
        del vars(owner)["step"], vars(owner)[_MARK]
        if before is not None:
            vars(owner)["step"] = before

    return restore
