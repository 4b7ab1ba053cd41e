"""The gate that ``gpushare verify`` puts in place of the compiled one, and the gate of captures."""

from __future__ import annotations

from types import ModuleType

from gpushare._torch import dynamo


class Gate:
    """The gate of this process's job, which moves all memory out and back at each boundary.

    The compiled module calls these methods. Any object that has them can be a gate.
    """

    def __init__(self, native: ModuleType) -> None:
        """Does nothing yet; ``native`` is the compiled module."""
        self._native = native
        # A boundary may come inside a function that is being compiled.
        dynamo.hide((Gate.enter, Gate.leave, Gate.close, Gate.begin_step, Gate.live_bytes))

    def enter(self) -> None:
        """Waits for a lease, if there is none. After five seconds a line says who holds the device.

        Raises:
            torch.OutOfMemoryError: The job's memory does not fit on the device any more.
            GpushareError: Another thread of this process is in the gate.
        """
        self._native.begin_iteration()

    def leave(self, kind: str, is_optimizer_step: bool) -> None:
        """A boundary: what kind, and whether an optimizer stepped."""
        self._native.end_iteration(kind, is_optimizer_step)
        self._native.spill_and_restore()

    def close(self) -> None:
        """Gives the lease back: an exception ended the iteration."""
        self._native.close_lease("exception")

    def begin_step(self) -> int:
        """Waits for memory that is late (``optimizer_state.py``); returns the leases so far."""
        return int(self._native.begin_step())

    def live_bytes(self) -> int:
        """Returns how many bytes are live."""
        return int(self._native.live_bytes())


def enter_outside_iteration(native: ModuleType) -> bool:
    """Waits for a lease as an iteration does; False where there is none to wait for.

    That is in an iteration, and in a process that is no job. Else ``native.end_iteration`` ends it.
    """
    job = native.job_stats()
    if not (job["is_registered"] and job["is_managed"]) or native.is_in_iteration():
        return False
    native.begin_iteration()
    return True
