"""Automatic boundaries: attaches a job to the program's model, optimizers and the rest of torch.

What runs around each call of the model and each step of an optimizer is C++ (``_C.call_model``,
``_C.step_optimizer``); this module puts it in place and takes it away. Torch's own hooks would be
pickled with the model, and seen by what compiles it. torch is imported when a job is watched, never
before.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from gpushare import _native
from gpushare._coordinator import gangs
from gpushare._torch import captures, compiled, dynamo, guards, module_calls, optimizer_steps
from gpushare._torch.optimizer_state import addresses, tensors_in

if TYPE_CHECKING:
    import torch

    from gpushare._torch.gate import Gate

_watcher: Watcher | None = None
"""The one that is attached."""


class Watcher:
    """Watches for one job; one at a time in a process."""

    def __init__(
        self,
        mark_late: Callable[[list[int]], None],
        *,
        gate: Gate | None = None,
        has_optimizer: bool = False,
        stop: Callable[[bool], bool] | None = None,
        join: Callable[[], None] | None = None,
    ) -> None:
        """Watches nothing yet.

        Args:
            mark_late: Takes the addresses of storages that are used late in an iteration.
            gate: Is entered and left in place of this process's own.
            has_optimizer: The user named an optimizer: its steps are waited for.
            stop: What to do between two blocks of the model (``safepoints.py``); None: nothing.
            join: To be called once this process turns out to be one of several ranks.
        """
        native = _native.load()

        def mark_state(optimizer: torch.optim.Optimizer) -> None:
            mark_late(addresses(tensors_in(optimizer)))

        def join_ranks() -> bool:
            """Tells whether this was the time to join."""
            if join is None or not gangs.is_distributed():
                return False
            join()
            return True

        # Both may be called inside a function that is being compiled.
        dynamo.hide((mark_state, join_ranks))
        self.watch = native.Watch(
            gate=gate,
            has_optimizer=has_optimizer,
            captures=captures.under_way,
            mark_state=mark_state,
            join=None if join is None else join_ranks,
        )
        """What sees the events of the training loop, and takes those that the user names."""
        self._stop = stop
        self._unwatch_model: list[Callable[[], None]] = []
        self._undo: list[Callable[[], None]] = []

    def attach(
        self, model: torch.nn.Module | None, optimizers: Sequence[torch.optim.Optimizer]
    ) -> None:
        """Watches the model, GradScaler, and the optimizers: all there are if none is named."""
        global _watcher
        native = _native.load()
        _watcher = self
        self.watch.set_named([weakref.ref(optimizer) for optimizer in optimizers])
        self.watch.attach()
        if model is not None:
            self.attach_model(model)
        self._undo = [
            guards.guard_backward(native.guard_backward),
            guards.watch_scaler(native.scaler_updated),
            guards.watch_excepthook(native.exception_uncaught),
        ]
        optimizer_steps.watch_steps()
        compiled.around = native.call_compiled
        optimizer_steps.around = native.step_optimizer

    def attach_model(self, model: torch.nn.Module) -> None:
        """Takes this module's forwards as the job's, instead of another's."""
        self._detach_model()
        self._unwatch_model.append(module_calls.watch(model, _native.load().call_model))
        if self._stop is not None:
            from gpushare._torch import safepoints

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
        self.watch.detach()
        if _watcher is self:
            _watcher = compiled.around = None
            # In a child that was forked just now others may look at the steps already.
            if optimizer_steps.around is _native.load().step_optimizer:
                optimizer_steps.around = None
