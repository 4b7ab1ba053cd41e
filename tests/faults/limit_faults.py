"""Refused calls: the kernel's limits of one process are lowered for a while."""

from __future__ import annotations

import contextlib
import functools
import random
import resource
import signal
from pathlib import Path

from tests.faults.campaign import Campaign, Kind
from tests.faults.job import Excuse

_MOST_SECONDS = 3.0
_SPARE_ADDRESSES = 16 << 20
"""Room for the 5 MiB that MKL copies a matrix into, without which its sums have another order."""
_ANY = Excuse(may_end=True, unmanaged_words="")
_ADDRESSES = Excuse(may_end=True, ending_signal=signal.SIGABRT, unmanaged_words="")
"""A C++ thread of a job that gets no memory aborts the job, by an uncaught std::bad_alloc."""
_REFUSED = (
    Excuse(unmanaged_words="the coordinator refuses this job"),
    Excuse(unmanaged_words="the coordinator ends every connection at once"),
)
"""A coordinator that cannot give a job a page refuses it, and the job trains on without it."""


def _limited(pid: int, number: int) -> int:
    """The limit that leaves the process what it has now and hardly more."""
    if number == resource.RLIMIT_NOFILE:
        return max(int(path.name) for path in Path(f"/proc/{pid}/fd").iterdir()) + 1
    if number == resource.RLIMIT_AS:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
        return pages * resource.getpagesize() + _SPARE_ADDRESSES
    return 0  # RLIMIT_FSIZE: no file may grow


_lowered: set[tuple[int, int]] = set()
"""Process and limit: what is low now. Lowered twice, it would be left low for good."""


def _lower(campaign: Campaign, pid: int, number: int, seconds: float) -> bool:
    if (pid, number) in _lowered:
        return False
    try:
        before = resource.prlimit(pid, number)
        resource.prlimit(pid, number, (_limited(pid, number), before[1]))
    except (OSError, ValueError):  # it has just ended
        return False

    _lowered.add((pid, number))

    def raise_again() -> bool:
        _lowered.discard((pid, number))
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, number, before)
        return True

    campaign.later(seconds, f"the limit of process {pid}", raise_again)
    return True


def limit_job(number: int, campaign: Campaign, rng: random.Random) -> str | None:
    """Limits a job. That job may end by an error or go on unmanaged; no other job may."""
    seconds = rng.uniform(0.2, _MOST_SECONDS)
    job = campaign.pool.choose(rng)
    if job is None:
        return None
    # The job keeps this excuse: what it could not get it may miss later.
    job.excuses.append(_ADDRESSES if number == resource.RLIMIT_AS else _ANY)
    if not _lower(campaign, job.pid, number, seconds):
        return None
    return f"{job.name}, pid {job.pid}, for {seconds:.2f} s"


def limit_coordinator(number: int, campaign: Campaign, rng: random.Random) -> str | None:
    """Limits the coordinator. Jobs that register meanwhile may go on unmanaged; no job may end."""
    seconds = rng.uniform(0.2, _MOST_SECONDS)
    pid = campaign.coordinator.pid()
    if pid is None or not _lower(campaign, pid, number, seconds):
        return None
    for excuse in _REFUSED:
        campaign.excuse_all(seconds, excuse)
    return f"pid {pid}, for {seconds:.2f} s"


KINDS = [
    Kind("job without descriptors", 4, functools.partial(limit_job, resource.RLIMIT_NOFILE)),
    Kind("job that may write no file", 3, functools.partial(limit_job, resource.RLIMIT_FSIZE)),
    Kind("job without addresses", 3, functools.partial(limit_job, resource.RLIMIT_AS)),
    Kind(
        "coordinator without descriptors",
        3,
        functools.partial(limit_coordinator, resource.RLIMIT_NOFILE),
    ),
    Kind(
        "coordinator that may write no file",
        3,
        functools.partial(limit_coordinator, resource.RLIMIT_FSIZE),
    ),
    Kind(
        "coordinator without addresses", 2, functools.partial(limit_coordinator, resource.RLIMIT_AS)
    ),
]
