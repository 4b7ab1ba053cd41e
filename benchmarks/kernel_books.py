"""What the kernel says a job has of the device: resident bytes of its reserved range, from smaps.

A sample is taken while all jobs are stopped, so that bytes on their way from one job to another
are not seen twice.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpushare.demo.kernel_memory import resident_bytes_in

if TYPE_CHECKING:
    from benchmarks.processes import JobProcess


class KernelBooks(threading.Thread):
    """Samples the sum over the jobs until stop()."""

    def __init__(self, jobs: Sequence[JobProcess], every_seconds: float) -> None:
        """The jobs must be ready."""
        super().__init__(daemon=True)
        self._jobs = jobs
        self._every = every_seconds
        self._ended = threading.Event()
        self.sums: list[int] = []

    def run(self) -> None:
        """Samples."""
        while not self._ended.wait(self._every):
            self.sums.append(self._sample())

    def stop(self) -> list[int]:
        """The sums, in bytes."""
        self._ended.set()
        self.join()
        return self.sums

    def _sample(self) -> int:
        for job in self._jobs:
            job.process.send_signal(signal.SIGSTOP)
        try:
            return sum(self._bytes_of(job) for job in self._jobs)
        finally:
            for job in self._jobs:
                job.process.send_signal(signal.SIGCONT)

    @staticmethod
    def _bytes_of(job: JobProcess) -> int:
        """Nothing, if it has ended."""
        try:
            return resident_bytes_in(job.pid, *job.ready["range"], shared="part")
        except (FileNotFoundError, ProcessLookupError):
            return 0
