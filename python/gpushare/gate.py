"""Entering and leaving iterations: the compiled gate, and what a long wait says.

The usual case is one call into C++ and back. Only a wait of more than five seconds comes to Python
again, to say who holds the device.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from types import ModuleType

FIRST_LINE_AFTER_SECONDS = 5.0
NEXT_LINE_AFTER_SECONDS = 60.0
_EXPLAIN_TIMEOUT_SECONDS = 1.0

_said_at = float("-inf")
"""When this process last said that it waits, on the monotonic clock."""


class Gate:
    """The gate of this process's job."""

    __slots__ = (
        "_native",
        "_spill_and_restore",
        "begin_step",
        "leave",
        "mark_late",
        "try_enter",
    )

    try_enter: Callable[[], bool]
    """Waits for a lease, if there is none; False: not within five seconds, then ``wait_on``.

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
        self.try_enter = functools.partial(native.begin_iteration, FIRST_LINE_AFTER_SECONDS)
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

    def wait_on(self) -> None:
        """Waits for the lease as long as it takes, and says once a minute at most who holds it.

        Raises:
            As ``try_enter``.
        """
        started = time.monotonic() - FIRST_LINE_AFTER_SECONDS
        while True:
            try:
                silent = _said_at + NEXT_LINE_AFTER_SECONDS - time.monotonic()
                if silent <= 0:
                    self._say_who_holds_it(started)
                    silent = NEXT_LINE_AFTER_SECONDS
                is_entered = self._native.begin_iteration(silent)
            except BaseException:
                self._native.give_up()
                raise
            if is_entered:
                return

    def _say_who_holds_it(self, started: float) -> None:
        global _said_at
        who = self._native.explain(_EXPLAIN_TIMEOUT_SECONDS)
        _said_at = time.monotonic()
        sys.stderr.write(f"gpushare: waiting for {_said_at - started:.0f} s: {who}\n")
        sys.stderr.flush()


def enter_outside_iteration(native: ModuleType) -> bool:
    """Waits for a lease as an iteration does; False where there is none to wait for.

    That is in an iteration, and in a process that is no job. Else ``native.end_iteration`` ends it.
    """
    from gpushare.job import current

    job = current()
    if job is None or not job.is_managed or native.is_in_iteration():
        return False
    gate = Gate(native)
    if not gate.try_enter():
        gate.wait_on()
    return True
