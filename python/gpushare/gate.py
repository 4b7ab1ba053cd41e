"""Entering and leaving iterations through the compiled gate: one call into C++ and back."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType


class Gate:
    """The gate of this process's job."""

    __slots__ = ("_native", "_spill_and_restore", "begin_step", "enter", "leave", "mark_late")

    enter: Callable[[], None]
    """Waits for a lease, if there is none. After five seconds a line says who holds the device.

    Raises:
        torch.OutOfMemoryError: The job's memory does not fit on the device any more.
        GpushareError: Another thread of this process is in the gate.
    """
    leave: Callable[[str, bool], None]
    """A boundary: what kind, and whether an optimizer stepped."""
    begin_step: Callable[[], int]
    """Waits for memory that is late (``optimizer_state.py``); returns the leases so far."""
    mark_late: Callable[[list[int]], None]
    """Storages at these addresses are used late in an iteration."""

    def __init__(self, native: ModuleType, *, force_spill: bool = False) -> None:
        """Does nothing yet.

        Args:
            native: The compiled module.
            force_spill: Move all memory out and back at each boundary (``gpushare verify``).
        """
        self._native = native
        self.enter = native.begin_iteration
        self._spill_and_restore: Callable[[], None] = native.spill_and_restore
        self.begin_step = native.begin_step
        self.mark_late = native.mark_late
        self.leave = self._leave_and_spill if force_spill else native.end_iteration

    def close(self) -> None:
        """Gives the lease back: an exception ended the iteration."""
        self._native.close_lease("exception")

    def _leave_and_spill(self, kind: str, is_optimizer_step: bool) -> None:
        self._native.end_iteration(kind, is_optimizer_step)
        self._spill_and_restore()


def enter_outside_iteration(native: ModuleType) -> bool:
    """Waits for a lease as an iteration does; False where there is none to wait for.

    That is in an iteration, and in a process that is no job. Else ``native.end_iteration`` ends it.
    """
    from gpushare.job import current

    job = current()
    if job is None or not job.is_managed or native.is_in_iteration():
        return False
    native.begin_iteration()
    return True
