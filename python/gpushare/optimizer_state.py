"""What an optimizer keeps between its steps: memory that an iteration needs late.

When a job's memory comes back to the device, its iteration begins without optimizer state, which
is restored meanwhile; the step waits for it. For that the allocator has to know which storages are
such state. It is told before a step, and only when there is anything new to tell: a large model
has many tensors to look at. An outdated answer costs time only: what moves is reachable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class OptimizerState:
    """Tells the allocator of the state of this job's optimizers."""

    def __init__(
        self, begin_step: Callable[[], int], mark_late: Callable[[list[int]], None]
    ) -> None:
        """Knows of none yet.

        Args:
            begin_step: Waits until late memory is in place; returns the number of leases so far.
            mark_late: Takes the addresses of storages that are used late in an iteration.
        """
        self._begin_step = begin_step
        self._mark_late = mark_late
        self._num_leases = -1
        self._num_marked: dict[int, int] = {}  # by id(optimizer), in this lease

    def step_began(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to use its state."""
        # Once a lease: tensors may have been exchanged, by load_state_dict say.
        num_leases = self._begin_step()
        if num_leases != self._num_leases:
            self._num_leases = num_leases
            self._num_marked.clear()
        count = len(optimizer.state)
        if self._num_marked.get(id(optimizer)) != count:
            self._num_marked[id(optimizer)] = count
            self._mark_late(addresses(tensors_in(optimizer)))


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
