"""Automatic boundaries: wires torch to the state machine of ``boundaries.py``.

Calls of the model and steps of optimizers go through the functions below; torch's own hooks would
be pickled with the model, and seen by what compiles it. torch is imported when a job is watched,
never before.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gpushare import captures, compiled, dynamo, gangs, guards, module_calls, optimizer_steps
from gpushare.boundaries import BEGIN, END
from gpushare.optimizer_state import OptimizerState

if TYPE_CHECKING:
    import torch

    from gpushare.boundaries import Boundaries
    from gpushare.gate import Gate

_OUTSIDE_BACKWARD = -1
"""What torch calls the graph task where no backward runs."""

_watcher: Watcher | None = None
_is_compiling: Callable[[], bool] = bool
"""torch.compiler.is_compiling, once a job is watched: a constant for traced code."""


class Watcher:
    """Watches for one job; one at a time in a process."""

    def __init__(
        self, boundaries: Boundaries, gate: Gate, *, stop: Callable[[bool], bool] | None = None
    ) -> None:
        """Watches nothing yet.

        Args:
            boundaries: Decides.
            gate: Is entered and left.
            stop: What to do between two blocks of the model (``safepoints.py``); None: nothing.
        """
        import torch

        self.boundaries = boundaries
        self._gate = gate
        self._enter = gate.enter
        self._leave = gate.leave
        self._stop = stop
        self.step_began = OptimizerState(gate.begin_step, gate.mark_late).step_began
        self._unwatch_model: list[Callable[[], None]] = []
        self._named: list[weakref.ref[torch.optim.Optimizer]] = []
        self.graph_task: Callable[[], int] = torch._C._current_graph_task_id
        self.is_grad_enabled: Callable[[], bool] = torch.is_grad_enabled
        self.join_gang: Callable[[], None] | None = None
        """To be called when this process turns out to be one of several ranks."""
        self.num_steps = 0
        """Steps of optimizers that were seen to end."""
        self._undo: list[Callable[[], None]] = []

    def attach(
        self, model: torch.nn.Module | None, optimizers: Sequence[torch.optim.Optimizer]
    ) -> None:
        """Watches the model, GradScaler, and the optimizers: all there are if none is named."""
        global _watcher, _is_compiling
        import torch

        _is_compiling = torch.compiler.is_compiling
        dynamo.hide((_forward_began, _forward_ended, _step_began, _step_ended))
        dynamo.hide((_forward_failed, _step_failed, _raised, Watcher.counts))
        dynamo.hide((module_calls.stock_call, _is_call_of_model, _compiled_ended, _num_steps))
        _watcher = self
        if model is not None:
            self.attach_model(model)
        self._named = [weakref.ref(optimizer) for optimizer in optimizers]
        self._undo = [
            guards.guard_backward(_raised),
            guards.watch_scaler(_scaler_updated),
            guards.watch_excepthook(_is_uncaught),
        ]
        optimizer_steps.watch_steps()
        dynamo.step_over(_call_compiled)
        dynamo.step_over(_step)
        compiled.around = _call_compiled
        optimizer_steps.around = _step

    def attach_model(self, model: torch.nn.Module) -> None:
        """Takes this module's forwards as the job's, instead of another's."""
        self._detach_model()
        self._unwatch_model.append(module_calls.watch(model, _call))
        if self._stop is not None:
            from gpushare import safepoints

            self._unwatch_model.append(safepoints.attach(model, self._stop))

    def _detach_model(self) -> None:
        while self._unwatch_model:
            self._unwatch_model.pop()()

    def detach(self) -> None:
        """Watches nothing any more."""
        global _watcher
        self._detach_model()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        if _watcher is self:
            _watcher = compiled.around = optimizer_steps.around = None

    def counts(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether this step is the job's: not that of a class inside the step of a derived one."""
        if id(optimizer) in self.boundaries.stepping:
            return False
        return not self._named or any(each() is optimizer for each in self._named)

    def carry_out(self, action: int) -> None:
        """Does what the state machine said; not while a stream is captured."""
        if captures.under_way:
            return
        if action & END:
            self._leave(self.boundaries.kind, self.boundaries.is_optimizer_step)
        if action & BEGIN:
            try:
                if self.join_gang is not None and gangs.is_distributed():
                    join, self.join_gang = self.join_gang, None
                    join()
                self._enter()
            except BaseException:
                self.boundaries.failed()
                raise

    def fail(self) -> None:
        """An exception left the iteration."""
        self.boundaries.failed()
        self._gate.close()

    def raised(self) -> None:
        """An exception leaves a forward, a backward or a step, and the user may catch it."""
        # Inside a backward it is not known yet whether it leaves that as well.
        is_ours = self.boundaries.is_active and not self.boundaries.is_only_explicit
        if is_ours and not self.is_in_backward():
            self.fail()

    def is_in_backward(self) -> bool:
        """Whether this thread is inside autograd's engine."""
        return self.graph_task() != _OUTSIDE_BACKWARD


# These run in every iteration, with cold caches: each call inside them costs a microsecond.


def _call(module: Any, *args: Any, **kwargs: Any) -> Any:
    """A call of the registered module."""
    if _is_compiling():
        return module._call_impl(*args, **kwargs)
    call = module_calls.stock_call(module)
    try:
        _forward_began()
        result = call(*args, **kwargs)
    except BaseException:
        _forward_failed()
        raise
    _forward_ended(module, args, result)
    return result


def _call_compiled(
    of: compiled.Compiled, function: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """A call of a compiled function, which may contain the model."""
    if not _is_call_of_model():
        return function(*args, **kwargs)
    num_steps = _num_steps()
    try:
        _forward_began()
        result = function(*args, **kwargs)
    except BaseException:
        _forward_failed()
        raise
    _compiled_ended(of.has_step and _num_steps() == num_steps)
    return result


def _step(
    step: Callable[..., Any], optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any
) -> Any:
    """A step of any optimizer."""
    if _watcher is None or not _watcher.counts(optimizer):
        return step(optimizer, *args, **kwargs)
    try:
        _step_began(optimizer)
        result = step(optimizer, *args, **kwargs)
    except BaseException:
        _step_failed(optimizer)
        raise
    _step_ended(optimizer)
    return result


def _forward_began() -> None:
    if _watcher is None:
        return
    action = _watcher.boundaries.forward_began(_watcher.is_in_backward())
    if action:
        _watcher.carry_out(action)


def _forward_ended(module: torch.nn.Module, args: Any, result: Any) -> None:
    # In a backward it is recomputation.
    if _watcher is None or _watcher.is_in_backward():
        return
    if not _watcher.is_grad_enabled():
        # A reentrant checkpoint runs a forward without gradients, and again in the backward.
        is_evaluation = not _may_be_differentiated(args)
    else:
        is_evaluation = not module.training and not _may_be_differentiated(result)
    action = _watcher.boundaries.forward_ended(is_evaluation, False)
    if action:
        _watcher.carry_out(action)


def _forward_failed() -> None:
    # Recomputation in a backward ends with an exception when it has what it needs.
    if _watcher is None or _watcher.is_in_backward():
        return
    if not _watcher.boundaries.is_only_explicit:
        _watcher.fail()


def _is_call_of_model() -> bool:
    """Whether a compiled function that is called now may be what stands for the model's forward."""
    if _watcher is None or _watcher.is_in_backward():
        return False
    boundaries = _watcher.boundaries
    # Inside a call of the model, or a step, it is part of that. Without gradients, in an iteration,
    # it is no training; at any other time it may use the model's memory.
    if boundaries.depth or boundaries.stepping:
        return False
    return not boundaries.is_active or _watcher.is_grad_enabled()


def _num_steps() -> int:
    return _watcher.num_steps if _watcher is not None else 0


def _compiled_ended(has_stepped: bool) -> None:
    """``has_stepped``: an optimizer stepped in the function's own code, so nobody saw it.

    Dynamo traces no step of torch's own optimizers: they are called, and seen.
    """
    if _watcher is None:
        return
    boundaries = _watcher.boundaries
    action = boundaries.forward_ended(not _watcher.is_grad_enabled(), False)
    if has_stepped:
        boundaries.step_began(0, False)
        action |= boundaries.step_ended(0, False)
    if action:
        _watcher.carry_out(action)


def _step_began(optimizer: torch.optim.Optimizer) -> None:
    if _watcher is None:
        return
    _watcher.boundaries.step_began(id(optimizer), _watcher.is_in_backward())
    _watcher.step_began(optimizer)


def _step_ended(optimizer: torch.optim.Optimizer) -> None:
    if _watcher is None:
        return
    _watcher.num_steps += 1
    action = _watcher.boundaries.step_ended(id(optimizer), _watcher.is_in_backward())
    if action:
        _watcher.carry_out(action)


def _step_failed(optimizer: torch.optim.Optimizer) -> None:
    if _watcher is not None:
        _watcher.raised()
        _watcher.boundaries.stepping.discard(id(optimizer))


def _raised() -> None:
    if _watcher is not None:
        _watcher.raised()


def _scaler_updated() -> None:
    if _watcher is not None:
        action = _watcher.boundaries.scaler_updated(_watcher.is_in_backward())
        if action:
            _watcher.carry_out(action)


def _is_uncaught() -> None:
    if _watcher is not None:
        _watcher.fail()


def _may_be_differentiated(result: Any) -> bool:
    """Whether a backward may follow: some tensor near the top of it asks for gradients."""
    if getattr(result, "requires_grad", False):
        return True
    if isinstance(result, dict):
        result = result.values()
    elif not isinstance(result, tuple | list):
        return False
    return any(getattr(part, "requires_grad", False) for part in result)
