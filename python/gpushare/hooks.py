"""Automatic boundaries: wires torch's hooks to the state machine of ``boundaries.py``.

The hooks are plain functions of this module that ask for the registered module, and not bound
methods: so a copy or a pickle of a hooked model carries no state of ours, and its hooks do nothing.
torch is imported when a job is watched, never before.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from gpushare import captures, dynamo
from gpushare.boundaries import BEGIN, END
from gpushare.guards import guard_backward, guard_call, guard_step, is_step_guarded
from gpushare.optimizer_state import OptimizerState

if TYPE_CHECKING:
    import torch

    from gpushare.boundaries import Boundaries
    from gpushare.gate import Gate

_OUTSIDE_BACKWARD = -1
"""What torch calls the graph task where no backward runs."""

_watcher: Watcher | None = None
_root: int = 0
"""id() of the registered module, while it lives."""


class _Handle(Protocol):
    def remove(self) -> None: ...


class Watcher:
    """The hooks of one job; one at a time in a process."""

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
        self._try_enter = gate.try_enter
        self._leave = gate.leave
        self._stop = stop
        self.step_began = OptimizerState(gate.begin_step, gate.mark_late).step_began
        self._handles: list[_Handle] = []
        self._model: weakref.ref[torch.nn.Module] | None = None
        self.graph_task: Callable[[], int] = torch._C._current_graph_task_id
        self.is_grad_enabled: Callable[[], bool] = torch.is_grad_enabled
        self._undo: list[Callable[[], None]] = []

    def attach(
        self, model: torch.nn.Module | None, optimizers: Sequence[torch.optim.Optimizer]
    ) -> None:
        """Hooks the model, the optimizers (all of the process if none is named) and GradScaler."""
        global _watcher
        dynamo.hide((_forward_began, _forward_ended, _step_began, _step_ended))
        _watcher = self
        if model is not None:
            self.attach_model(model)
        self._handles += _hook_optimizers(optimizers)
        for optimizer in optimizers:
            self.guard_optimizer(optimizer)
        self._undo += [guard_backward(_raised), _wrap_scaler(), _wrap_excepthook()]

    def attach_model(self, model: torch.nn.Module) -> None:
        """Takes this module's forwards as the job's."""
        global _root
        _root = id(model)
        self._model = weakref.ref(model, _forget_root)
        self._handles += [
            model.register_forward_pre_hook(_forward_began, prepend=True),
            model.register_forward_hook(_forward_ended, always_call=True),
        ]
        self._undo.append(guard_call(model, _raised))
        if self._stop is not None:
            from gpushare import safepoints

            self._handles += safepoints.attach(model, self._stop)
            self._undo.append(safepoints.detach)

    def guard_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Has exceptions of this optimizer's step seen; later calls do nothing."""
        if not is_step_guarded(optimizer):
            self._undo.append(guard_step(optimizer, _raised))

    def detach(self) -> None:
        """Removes every hook."""
        global _watcher, _root
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        if _watcher is self:
            _watcher = None
            _root = 0

    def carry_out(self, action: int) -> None:
        """Does what the state machine said; not while a stream is captured."""
        if captures.under_way:
            return
        if action & END:
            self._leave(self.boundaries.kind, self.boundaries.is_optimizer_step)
        if action & BEGIN:
            try:
                if not self._try_enter():
                    self._gate.wait_on()
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


# These four run in every iteration, with cold caches: each call inside them costs a microsecond.


def _forward_began(module: torch.nn.Module, _args: Any) -> None:
    if id(module) != _root or _watcher is None:
        return
    boundaries = _watcher.boundaries
    if boundaries.depth and not _is_nested(module):
        boundaries.forget_forwards()
    if boundaries.stepping and not _is_in_step():
        boundaries.forget_steps()
    action = boundaries.forward_began(_watcher.graph_task() != _OUTSIDE_BACKWARD)
    if action:
        _watcher.carry_out(action)


def _forward_ended(module: torch.nn.Module, _args: Any, result: Any) -> None:
    if id(module) != _root or _watcher is None:
        return
    if _watcher.graph_task() != _OUTSIDE_BACKWARD:
        return  # recomputation, which ends with an exception when it has what it needs
    if result is None and sys.exc_info()[0] is not None:
        if not _watcher.boundaries.is_only_explicit:
            _watcher.fail()
        return
    is_evaluation = not _watcher.is_grad_enabled() or (
        not module.training and not _may_be_differentiated(result)
    )
    action = _watcher.boundaries.forward_ended(is_evaluation, False)
    if action:
        _watcher.carry_out(action)


def _step_began(optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
    if _watcher is None:
        return
    if not is_step_guarded(optimizer):
        _watcher.guard_optimizer(optimizer)  # from its next step on: nobody named it
    is_in_backward = _watcher.graph_task() != _OUTSIDE_BACKWARD
    _watcher.boundaries.step_began(id(optimizer), is_in_backward)
    _watcher.step_began(optimizer)


def _step_ended(optimizer: torch.optim.Optimizer, _args: Any, _kwargs: Any) -> None:
    if _watcher is None:
        return
    is_in_backward = _watcher.graph_task() != _OUTSIDE_BACKWARD
    action = _watcher.boundaries.step_ended(id(optimizer), is_in_backward)
    if action:
        _watcher.carry_out(action)


def _raised() -> None:
    if _watcher is not None:
        _watcher.raised()


def _forget_root(reference: weakref.ref[torch.nn.Module]) -> None:
    global _root
    if _watcher is not None and _watcher._model is reference:
        _root = 0


def _hook_optimizers(optimizers: Sequence[torch.optim.Optimizer]) -> list[_Handle]:
    from torch.optim import optimizer as torch_optimizer

    if not optimizers:
        return [
            torch_optimizer.register_optimizer_step_pre_hook(_step_began),
            torch_optimizer.register_optimizer_step_post_hook(_step_ended),
        ]
    handles: list[_Handle] = []
    for optimizer in optimizers:
        handles.append(optimizer.register_step_pre_hook(_step_began))
        handles.append(optimizer.register_step_post_hook(_step_ended))
    return handles


def _wrap_scaler() -> Callable[[], None]:
    """Has GradScaler.update tell us; returns what undoes it."""
    from torch.amp.grad_scaler import GradScaler

    update = GradScaler.update

    def update_and_tell(scaler: GradScaler, *args: Any, **kwargs: Any) -> None:
        update(scaler, *args, **kwargs)
        if _watcher is not None:
            action = _watcher.boundaries.scaler_updated(_watcher.is_in_backward())
            if action:
                _watcher.carry_out(action)

    update_and_tell.__doc__ = update.__doc__
    GradScaler.update = update_and_tell  # type: ignore[method-assign, assignment]

    def restore() -> None:
        # Somebody may have wrapped it after us; then ours stays below, and does nothing.
        if GradScaler.update is update_and_tell:
            GradScaler.update = update  # type: ignore[method-assign]

    return restore


def _wrap_excepthook() -> Callable[[], None]:
    """Has an uncaught exception close the lease; returns what undoes it."""
    report = sys.excepthook

    def close_and_report(*error: Any) -> None:
        # First: the traceback may be long in coming, and others need not wait for it.
        if _watcher is not None:
            _watcher.fail()
        report(*error)

    sys.excepthook = close_and_report

    def restore() -> None:
        if sys.excepthook is close_and_report:
            sys.excepthook = report

    return restore


def _may_be_differentiated(result: Any) -> bool:
    """Whether a backward may follow: some tensor near the top of the result asks for gradients."""
    if getattr(result, "requires_grad", False):
        return True
    if isinstance(result, dict):
        result = result.values()
    elif not isinstance(result, tuple | list):
        return False
    return any(getattr(part, "requires_grad", False) for part in result)


def _is_nested(module: torch.nn.Module) -> bool:
    """Whether this call of ``module`` is inside another one of it."""
    num_calls = 0
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "_call_impl" and frame.f_locals.get("self") is module:
            num_calls += 1
        frame = frame.f_back
    return num_calls > 1


def _is_in_step() -> bool:
    """Whether some optimizer's step is under way: what torch wraps around each is on the stack."""
    code = _step_wrapper_code()
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


@functools.cache
def _step_wrapper_code() -> Any:
    from torch.optim import Optimizer

    return Optimizer.profile_hook_step(lambda: None).__code__
