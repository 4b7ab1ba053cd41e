"""Where a model is: on the device that this process shares, or elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpushare import _native
from gpushare._settings.devices import CPU, CUDA, CUDA_PREFIX
from gpushare._torch.unseen import unseen
from gpushare.errors import GpushareError

if TYPE_CHECKING:
    import torch


def is_any_shared(tensors: Iterable[torch.Tensor]) -> bool:
    """Tells whether a tensor is on the device that this process shares, or on none yet (meta)."""
    if not _native.is_installed():
        return False  # CUDA was not started yet: whatever runs does so elsewhere
    if _native.device() == CPU:
        return True
    with unseen():
        return any(not _is_elsewhere(each.device) for each in tensors)


def refuse_elsewhere(model: torch.nn.Module | None) -> None:
    """Refuses a model on another CUDA device: the job would take turns where it has no memory.

    A model on the CPU may come to the shared device later, and one that is on several has a part
    there.

    Raises:
        GpushareError: It is elsewhere; the text is that of ``elsewhere``.
    """
    if model is None or is_any_shared(model.parameters()):
        return
    if text := elsewhere(model):
        raise GpushareError(text)


def elsewhere(model: torch.nn.Module) -> str:
    """Returns a text that says on which CUDA devices the model is, and what chooses the first.

    It is "" for a model without a parameter on such a device. Of the shared device the caller
    knows that it has none.
    """
    with unseen():
        indices = {each.device.index for each in model.parameters() if each.device.type == CUDA}
    if not indices:
        return ""
    where = [f"{CUDA_PREFIX}{index}" for index in sorted(indices)]
    return (
        f"the model is on {', '.join(where)}, and this process shares "
        f"{CUDA_PREFIX}{_native.cuda_index()} ({_native.device()}). GPUSHARE_DEVICE={where[0]} in "
        "its environment chooses the other one. Where nothing is chosen, a process shares the "
        "device whose number is its LOCAL_RANK, or the first one"
    )


def _is_elsewhere(device: torch.device) -> bool:
    return device.type == CPU or (device.type == CUDA and device.index != _native.cuda_index())
