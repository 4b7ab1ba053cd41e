"""The two lines that a job says at its end: where its time went, and what was moved."""

from __future__ import annotations

import atexit
import dataclasses
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpushare import _native
from gpushare.stats import JobStats, job_stats

if TYPE_CHECKING:
    from gpushare.job import Job

_COUNTED = (
    "busy_seconds",
    "waited_seconds",
    "moving_seconds",
    "iterations",
    "leases",
    "spilled_total_bytes",
    "restored_total_bytes",
    "dropped_total_bytes",
)
"""Figures that grow: an earlier registration's part of them is not this one's."""

_started: dict[str, tuple[float, JobStats]] = {}
"""Name of the open job, when it was registered, and the figures then; at most one."""
_armed_in = 0
"""The process whose exit is watched: a forked child has an end of its own."""


def arm(job: Job, current: Callable[[], Job | None]) -> None:
    """Has the job's end reported, by ``close`` or at exit.

    Args:
        job: Has just begun.
        current: Returns the job that is open then.
    """
    global _armed_in
    _started.clear()
    _started[job.name] = (time.monotonic(), job_stats())
    if _armed_in != os.getpid():
        _armed_in = os.getpid()
        atexit.register(_close_at_exit, _armed_in, current)


def note_end(job: Job, persistent_bytes: int = 0) -> None:
    """Prints the report, unless the settings say not to; once for each job.

    Args:
        job: Has just ended.
        persistent_bytes: What was live at its last boundary; 0 if that is not known.
    """
    started = _started.pop(job.name, None)
    if started is None or not _native.settings().report:
        return
    began, before = started
    stats = since(before, job_stats())
    text = render(job.name, stats, time.monotonic() - began, persistent_bytes)
    sys.stderr.write(text)
    sys.stderr.flush()


def forget(job: Job) -> None:
    """Has this job's end not reported: another job of this process takes its place."""
    _started.pop(job.name, None)


def since(before: JobStats, now: JobStats) -> JobStats:
    """Returns the figures of now, those that grow without what they were before."""
    grown = {name: getattr(now, name) - getattr(before, name) for name in _COUNTED}
    return dataclasses.replace(now, **grown)


def render(name: str, stats: JobStats, seconds: float, persistent_bytes: int = 0) -> str:
    """Returns the report.

    Args:
        name: The job's.
        stats: Its figures at the end.
        seconds: How long it was registered.
        persistent_bytes: What was live at its last boundary; 0: take what is live now.
    """
    from gpushare.cli.units import format_bytes

    moving = stats.moving_seconds
    # A part of less than a second says nothing.
    share = f" ({100 * moving / seconds:.1f} %)" if 1 <= moving <= seconds else ""
    # Neither waiting nor switching would have been; what is left took its time in any case.
    alone = max(0.0, seconds - stats.waited_seconds - moving)
    persistent = persistent_bytes or stats.live_bytes
    peak = max(stats.peak_backed_bytes, persistent)
    return (
        f"gpushare: {name}: {format_time(seconds)} (alone about {format_time(alone)}): "
        f"running {format_time(stats.busy_seconds)}, waiting {format_time(stats.waited_seconds)}, "
        f"switching {format_time(moving)}{share}; "
        f"{stats.iterations} iterations, leases: {stats.leases}\n"
        f"gpushare: moved {format_bytes(stats.spilled_total_bytes)} out and "
        f"{format_bytes(stats.restored_total_bytes)} back, dropped "
        f"{format_bytes(stats.dropped_total_bytes)}; peak {format_bytes(peak)} = "
        f"{format_bytes(persistent)} persistent + {format_bytes(peak - persistent)} ephemeral\n"
    )


def format_time(seconds: float) -> str:
    """Returns, for example, "72 min", "48 s" or "0.8 s"."""
    if seconds >= 600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def _close_at_exit(owner: int, current: Callable[[], Job | None]) -> None:
    job = current()
    if job is not None and os.getpid() == owner:
        job.close(is_exiting=True)
