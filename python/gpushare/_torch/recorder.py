"""Records what a training program computed, so that two runs can be compared bit by bit.

``gpushare verify`` sets GPUSHARE_RECORD to a file. Then every loss (each root tensor of a backward
pass) is hashed when its backward begins, and at exit the parameters of every optimizer that made a
step. It works with and without gpushare's scheduling, changes no value, and draws no random number.

Limits: one training process (a fork records nothing; of several processes each writes its own
file), and programs that call ``torch.autograd.grad`` only are seen through their parameters alone.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpushare._torch.by_identity import ByIdentity
from gpushare._torch.torch_import import when_torch_is_loaded

if TYPE_CHECKING:
    import torch


SCHEMA_VERSION = 1
_HASH_BYTES = 8

_recorder: Recorder | None = None


def start(path: str) -> None:
    """Begins to record, as soon as torch is loaded, and writes the record at exit.

    Args:
        path: The file to write, as JSON. If another process has written it, ``path.PID`` instead.
    """
    global _recorder
    if _recorder is not None:
        return
    recorder = Recorder()
    _recorder = recorder
    owner = os.getpid()

    def write_in_owner() -> None:
        if os.getpid() == owner and recorder.has_anything():
            write_record(recorder.finish(), path)

    atexit.register(write_in_owner)
    os.register_at_fork(after_in_child=recorder.deactivate)
    when_torch_is_loaded(recorder.hook_torch)


class Recorder:
    """Hashes of losses and parameters of this process."""

    def __init__(self) -> None:
        """Records nothing until ``hook_torch``."""
        self._is_active = True
        self._is_in_backward = False
        self._started = time.monotonic()
        self._losses: list[str] = []
        self._num_optimizer_steps = 0
        self._parameters: list[torch.Tensor] = []
        self._seen_parameters: set[int] = set()
        self._seen_groups: ByIdentity[torch.optim.Optimizer, int] = ByIdentity()

    def hook_torch(self) -> None:
        """Watches ``torch.autograd.backward`` and the steps of all optimizers."""
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        torch.autograd.backward = self._watched(torch.autograd.backward)
        register_optimizer_step_post_hook(self._on_optimizer_step)

    def deactivate(self) -> None:
        """Records nothing from now on."""
        self._is_active = False
        self._parameters = []

    def has_anything(self) -> bool:
        """Tells whether a loss or a step was seen."""
        return self._is_active and bool(self._losses or self._parameters)

    def finish(self) -> dict[str, Any]:
        """Hashes the parameters and returns the whole record."""
        all_losses = hashlib.sha256("".join(self._losses).encode()).hexdigest()
        parameters = [_describe(tensor) for tensor in self._parameters]
        all_parameters = hashlib.sha256(json.dumps(parameters).encode()).hexdigest()
        return {
            "schema_version": SCHEMA_VERSION,
            "pid": os.getpid(),
            "command": sys.orig_argv,
            "seconds": time.monotonic() - self._started,
            "num_optimizer_steps": self._num_optimizer_steps,
            "losses": self._losses,
            "losses_hash": all_losses,
            "parameters": parameters,
            "parameters_hash": all_parameters,
            "job": _job_stats(),
        }

    def _watched(self, backward: Callable[..., None]) -> Callable[..., None]:
        def watched_backward(
            tensors: torch.Tensor | Sequence[torch.Tensor], *args: Any, **kwargs: Any
        ) -> None:
            # A backward inside a backward (checkpointing) belongs to the outer one.
            if not self._is_active or self._is_in_backward:
                return backward(tensors, *args, **kwargs)
            for root in _roots(tensors):
                self._losses.append(hash_tensor(root))
            self._is_in_backward = True
            try:
                return backward(tensors, *args, **kwargs)
            finally:
                self._is_in_backward = False

        watched_backward.__doc__ = backward.__doc__
        watched_backward.__wrapped__ = backward  # type: ignore[attr-defined]
        return watched_backward

    def _on_optimizer_step(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if not self._is_active:
            return
        self._num_optimizer_steps += 1
        groups = optimizer.param_groups
        if self._seen_groups.get(optimizer) == len(groups):
            return
        self._seen_groups[optimizer] = len(groups)
        for group in groups:
            for parameter in group["params"]:
                if id(parameter) not in self._seen_parameters:
                    # Held until exit, so that its id stays its own and its end value can be hashed.
                    self._seen_parameters.add(id(parameter))
                    self._parameters.append(parameter)


def hash_tensor(tensor: torch.Tensor) -> str:
    """Returns a short hash of a tensor's type, shape and value bytes."""
    plain = tensor.detach().cpu().contiguous()
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    digest.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
    num_bytes = plain.numel() * plain.element_size()
    if num_bytes:
        digest.update((ctypes.c_char * num_bytes).from_address(plain.data_ptr()))
    return digest.hexdigest()


def write_record(record: dict[str, Any], path: str) -> None:
    """Writes a record without overwriting one that another process wrote."""
    text = json.dumps(record)
    try:
        with Path(path).open("x") as file:
            file.write(text)
    except FileExistsError:
        Path(f"{path}.{os.getpid()}").write_text(text)


def _roots(tensors: torch.Tensor | Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    import torch

    return (tensors,) if isinstance(tensors, torch.Tensor) else tensors


def _job_stats() -> dict[str, Any] | None:
    """What gpushare did in this process; None where it is not at work."""
    native = sys.modules.get("gpushare._C")
    if native is None or not native.is_installed():
        return None
    return dict(native.job_stats())


def _describe(tensor: torch.Tensor) -> dict[str, Any]:
    return {
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "hash": hash_tensor(tensor),
    }
