"""``gpushare run``: finds an unmodified script's model and registers it.

Optimizers are remembered as they are made. The first module that is called and shares a parameter
with one of them is the model, the outermost since callers come first. A program that calls a module
before it makes any optimizer evaluates: that module is registered at once, and exchanged if a model
of an optimizer shows up later. A sweep inside one process makes one model after the other: once the
model is gone, the next optimizer's takes its place. A program may have no module at all, but
tensors of its own that an optimizer changes. It is registered without a model after two steps, and
its steps are its boundaries. One step proves nothing: programs that resume make one beforehand, to
have state to load into. A script that calls ``gpushare.register`` itself is left alone.

A forked child is no job before it makes a module or steps an optimizer. Then it is looked at as any
other process: a daemon that goes on training, or a worker of a pool that trains. Loaders' workers
do neither, and a child that evaluates what it has inherited uses its parent's memory.

Where a CUDA device is to be shared, a model on the CPU or on another CUDA device makes no job, and
one line says so. That CUDA has been started shows nothing: torch's optimizers do that, whatever
they optimize.

Watching costs something for every module call, so it ends when the model is found, or none can be.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpushare import _install, _native, children
from gpushare._settings.devices import CPU
from gpushare._torch import model_device, optimizer_steps
from gpushare._torch.by_identity import ByIdentity
from gpushare._torch.torch_import import when_torch_is_loaded
from gpushare.errors import say_once

if TYPE_CHECKING:
    import torch

    from gpushare.job import Job

_STEPS_WITHOUT_MODEL = 2
"""After so many steps, none of a module that was called, the program trains bare tensors."""

_finder: Finder | None = None


def enable() -> None:
    """Looks for the model as soon as torch is loaded. Later calls do nothing."""
    global _finder
    if _finder is None:
        _finder = Finder()
        os.register_at_fork(after_in_child=_begin_in_child)
        _install.start()
        when_torch_is_loaded(_finder.start)


def exchange(finder: Finder) -> Job | None:
    """Looks with another finder from now on; returns the job that was found before, if any."""
    global _finder
    before, _finder = _finder, finder
    if before is not None:
        before.stop()
    _install.start()
    when_torch_is_loaded(finder.start)
    return before.job if before is not None else None


def is_found(job: Job) -> bool:
    """Tells whether this job was registered here, and not by the program."""
    return _finder is not None and _finder.job is job


def _begin_in_child() -> None:
    if _finder is not None and _native.is_forked_child() and _native.device() == CPU:
        _finder.begin_in_child()


class Finder:
    """Watches optimizers being made and modules being called."""

    def __init__(self) -> None:
        """Watches nothing yet."""
        self._optimizers: ByIdentity[torch.optim.Optimizer, None] = ByIdentity()
        self._owned: set[int] | None = None  # ids of the optimizers' parameters; None: look again
        self._job: Job | None = None
        self._model: weakref.ref[torch.nn.Module] | None = None  # the one that was found last
        self._is_watching = False
        self._is_done = False
        self._is_elsewhere_said = False
        self._is_stopped = False
        self._num_steps = 0  # while no job is watched
        self._registers = threading.RLock()  # held by the thread that makes this process a job

    def start(self) -> None:
        """Begins to watch, where this process is to be a job."""
        if children.is_waiting_for_training():
            children.when_training_begins(self.start)
            return
        if not (_native.is_installed() or _install.is_waiting_for_cuda()):
            return
        self._watch_optimizers()
        self._watch_calls()
        # A process without a job has not imported this yet, which takes 13 ms.
        job = sys.modules.get("gpushare.job")
        # A job sees its steps itself, as where a notebook takes one over.
        if job is None or job.current() is None:
            self._watch_steps()

    def begin_in_child(self) -> None:
        """This process has just been forked from one that had begun: waits until it trains."""
        if self._is_stopped:
            return
        self._job = self._model = None
        self._is_watching = self._is_done = False
        self._num_steps = 0
        self._registers = threading.RLock()
        children.when_training_begins(self._train_in_child)

    def _train_in_child(self) -> None:
        _install.install_in_child()
        if _native.is_installed():
            self._watch_calls()
            self._watch_steps()

    @property
    def job(self) -> Job | None:
        """The job that was registered; it may have been closed since."""
        return self._job

    def stop(self) -> None:
        """Looks no more."""
        self._is_watching, self._is_done, self._model = False, True, None
        self._is_stopped = True

    def _watch_optimizers(self) -> None:
        import torch

        original = torch.optim.Optimizer.__init__
        finder = self

        def remember(optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            finder.optimizer_made(optimizer)

        remember.__doc__ = original.__doc__
        remember.__wrapped__ = original  # type: ignore[attr-defined]
        torch.optim.Optimizer.__init__ = remember  # type: ignore[method-assign, assignment]

    def _watch_calls(self) -> None:
        """Puts us before ``Module.__call__``.

        Not a global forward pre-hook: compiled modules warn of those, and call them twice.
        """
        import torch

        original = torch.nn.Module.__call__
        finder = self

        def look_and_call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if finder._is_watching and finder.ends_watching(module):
                # Somebody may have wrapped it after us; then ours stays below, and does nothing.
                if torch.nn.Module.__call__ is look_and_call:
                    torch.nn.Module.__call__ = original  # type: ignore[method-assign]
                if _native.is_installed():
                    finder.found(module)
            return original(module, *args, **kwargs)

        self._is_watching = True
        torch.nn.Module.__call__ = look_and_call  # type: ignore[method-assign]

    def _watch_steps(self) -> None:
        """Looks at the steps of optimizers until a job is watched, which then sees them itself."""

        def step_and_look(
            step: Callable[..., Any], optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any
        ) -> Any:
            result = step(optimizer, *args, **kwargs)
            if self._is_watching:
                self.stepped(optimizer)
            return result

        optimizer_steps.around = step_and_look

    def optimizer_made(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer was constructed.

        In a sweep inside one process it is the next model's, if the last one is gone. Where that is
        still there, as in a GAN, the optimizer's steps are seen all the same.
        """
        if self._is_done:
            if self._model is None or self._model() is not None:
                return
            self._is_done, self._model = False, None
        self._optimizers[optimizer] = None
        self._owned = None
        if not (self._is_watching or children.is_waiting_for_training()):
            self._watch_calls()

    def ends_watching(self, module: torch.nn.Module) -> bool:
        """A module is about to run: tells whether it is the last one that is looked at."""
        import torch

        if torch._C._current_graph_task_id() != -1:
            return False
        if not (_native.is_installed() or _install.is_waiting_for_cuda()):
            self._is_watching, self._is_done = False, True
            return True  # gpushare was refused where CUDA started, and has said why
        if self._is_elsewhere_said and _begins_elsewhere(module):
            return False  # quick: this goes on for as long as the program uses another device
        if not self.is_model(module):
            return False
        if is_on_shared_device(module):
            return True
        self._is_elsewhere_said = True
        place = model_device.elsewhere(module)
        if place:
            say_once(f"{place}. This process is no job yet")
        else:
            say_once(
                "the model is on the CPU, and the device to share a CUDA one: this process is no "
                "job yet. GPUSHARE_DEVICE=cpu shares the CPU"
            )
        return False

    def is_model(self, module: torch.nn.Module) -> bool:
        """Tells whether this is the module whose forwards are the job's."""
        parameters = {id(parameter) for parameter in module.parameters()}
        if not self._optimizers:
            return bool(parameters)
        if self._owned is None:
            self._owned = {
                id(parameter)
                for optimizer in self._optimizers
                for group in optimizer.param_groups
                for parameter in group["params"]
            }
        return not parameters.isdisjoint(self._owned)

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer has stepped, and its model was not called: there may be none.

        Modules are looked at all the same: the model may come later.
        """
        from gpushare.job import current, register

        if optimizer not in self._optimizers:  # older than our watch, or from another process
            self.optimizer_made(optimizer)
        parameters = (each for group in optimizer.param_groups for each in group["params"])
        if (
            self._job is not None
            or current() is not None
            or not model_device.is_any_shared(parameters)
        ):
            return
        with self._registers:
            self._num_steps += 1
            if self._num_steps == _STEPS_WITHOUT_MODEL and self._job is None:
                self._job = register()

    def found(self, module: torch.nn.Module) -> None:
        """Registers the model, or exchanges the one that was registered before.

        Of threads that call their first models at once, one does so.
        """
        from gpushare.job import current, register

        with self._registers:
            if not self._is_watching:
                return
            self._is_watching = False
            self._is_done = bool(self._optimizers)
            self._model = weakref.ref(module)
            if current() is not self._job:
                self.stop()  # the script registered by itself, or closed our job
            elif self._job is None:
                self._job = register(module)
            else:
                self._job.watch(module)


def is_on_shared_device(module: torch.nn.Module) -> bool:
    """Tells whether the module's parameters are where this process shares memory."""
    return model_device.is_any_shared(module.parameters())


def _begins_elsewhere(module: torch.nn.Module) -> bool:
    first = next(module.parameters(), None)
    return first is None or not model_device.is_any_shared([first])
