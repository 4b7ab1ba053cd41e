"""What an optimizer keeps between its steps: memory that an iteration needs late.

When a job's memory comes back to the device, its iteration begins without optimizer state, which
is restored meanwhile; the step waits for it. For that the allocator has to know which storages are
such state. The compiled module decides when it is told (``MarkedState``): before a step, and only
where there can be anything new, since a large model has many tensors to look at. An outdated answer
costs time only: what moves is reachable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from gpushare._torch.unseen import unseen

if TYPE_CHECKING:
    import torch


def tensors_in(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    """Yields the tensors of an optimizer's state, also those in lists there."""
    for state in optimizer.state.values():
        yield from _tensors(state.values() if isinstance(state, dict) else [state])


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from (part for part in value if isinstance(part, torch.Tensor))


def addresses(tensors: Iterable[torch.Tensor]) -> list[int]:
    """Returns where the tensors' storages begin; 0 for a tensor without CPU memory of its own."""
    with unseen():
        return [storage_place(tensor)[0] for tensor in tensors]


def storage_place(tensor: Any) -> tuple[int, int]:
    """Returns first address and size of the tensor's storage; zeros if it has none on the CPU."""
    try:
        if tensor.device.type != "cpu":
            return 0, 0
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()
    except (NotImplementedError, RuntimeError, ValueError):
        return 0, 0  # lazy, sparse, or a wrapper
