"""Samples the device memory of a scene's jobs, all at once, and keeps the highest sum."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpushare.demo.kernel_memory import resident_bytes, resident_bytes_in

if TYPE_CHECKING:
    from gpushare.demo.job_process import JobProcess


@dataclass(frozen=True)
class MemoryPeak:
    """What sampling found."""

    peak_bytes: int
    """The highest sum over all jobs."""
    num_samples: int
    """How many sums were taken."""


class MemorySampler:
    """A thread that samples while a ``with`` block runs.

    Jobs on gpushare's allocator are measured by the kernel's figures for their reserved range;
    others by their resident memory above what they had when they were ready to train.
    """

    def __init__(
        self,
        processes: Sequence[JobProcess],
        interval_seconds: float,
        limit_bytes: int | None = None,
    ) -> None:
        """Takes the levels to measure from.

        Args:
            processes: The jobs, ready but not yet training.
            interval_seconds: Time between samples. Reading the ranges costs milliseconds a job.
            limit_bytes: A sum above this is read again; see ``_confirmed_total``.
        """
        self._processes = list(processes)
        self._base_bytes = {
            process.pid: resident_bytes(process.pid)
            for process in processes
            if process.reserved_range is None
        }
        self._interval_seconds = interval_seconds
        self._limit_bytes = limit_bytes
        self._peak_bytes = 0
        self._num_samples = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_end, daemon=True)

    def __enter__(self) -> MemorySampler:
        """Starts to sample."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends sampling."""
        self._end.set()
        self._thread.join()

    def peak(self) -> MemoryPeak:
        """Returns what was found. Call after the ``with`` block."""
        return MemoryPeak(self._peak_bytes, self._num_samples)

    def _sample_until_end(self) -> None:
        while not self._end.wait(self._interval_seconds):
            self._peak_bytes = max(self._peak_bytes, self._confirmed_total())
            self._num_samples += 1

    def _confirmed_total(self) -> int:
        total = self._total()
        if self._limit_bytes is None or total <= self._limit_bytes:
            return total
        # The kernel is asked about one process after the other, and bytes that change hands in
        # between are counted twice. So what looks like too much is looked at with all of them
        # stopped; an excess that has gone by then was none, or a short one.
        with contextlib.ExitStack() as stack:
            for process in self._processes:
                stack.enter_context(process.paused())
            return self._total()

    def _total(self) -> int:
        return sum(self._used_bytes(process) for process in self._processes)

    def _used_bytes(self, process: JobProcess) -> int:
        if not process.is_alive():
            return 0
        if process.reserved_range is not None:
            return resident_bytes_in(process.pid, *process.reserved_range, shared="part")
        return max(0, resident_bytes(process.pid) - self._base_bytes[process.pid])
