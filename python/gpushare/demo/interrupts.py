"""Ctrl-C and SIGTERM, held back for a moment."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Raises an interrupt that comes while the block runs when it has ended.

    In the middle of starting a process it would leave one that nobody knows of.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _frame: pending.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for caught in pending:
            signal.raise_signal(caught)
