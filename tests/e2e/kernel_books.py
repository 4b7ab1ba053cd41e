"""What the kernel says a job has of the device: resident bytes of its reserved range, from smaps.

A sample is taken while all jobs are stopped, so that bytes on their way from one job to another
are not seen twice.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.processes import JobProcess


def resident_bytes(pid: int, base: int, size: int) -> int:
    """Resident bytes of [base, base + size) in the process, 0 if it is gone."""
    total, inside = 0, False
    try:
        lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    for line in lines:
        head = line.split(maxsplit=1)[0]
        if "-" in head and not head.endswith(":"):
            first, last = (int(part, 16) for part in head.split("-"))
            inside = base <= first and last <= base + size
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


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
        running = [job for job in self._jobs if job.process.poll() is None]
        for job in running:
            os.kill(job.pid, signal.SIGSTOP)
        try:
            return sum(resident_bytes(job.pid, *job.ready["range"]) for job in running)
        finally:
            for job in running:
                os.kill(job.pid, signal.SIGCONT)
