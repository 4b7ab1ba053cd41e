"""Faults of the machine: a disk without room, clocks that differ."""

from __future__ import annotations

import random
from pathlib import Path

from tests.faults.campaign import Campaign, Kind
from tests.faults.job import Excuse

_FULL_SECONDS = 4.0
_LONG_FULL_SECONDS = 35.0
_LONG = 0.15
"""The part of the full disks that outlasts `memory_wait`."""
_FULL = "free on its disk"
_CAP_SYS_ADMIN = 21
_MOST_CLOCK_SECONDS = 10_000_000


def fill_disk(campaign: Campaign, rng: random.Random) -> str | None:
    """The folder for spilled memory has no byte left for a while."""
    most = _LONG_FULL_SECONDS if rng.random() < _LONG else _FULL_SECONDS
    seconds = rng.uniform(0.2, most)
    if campaign.disk.is_full:
        return None
    campaign.disk.fill()
    campaign.excuse_all(seconds, Excuse(out_of_memory_words=_FULL))

    def empty() -> bool:
        campaign.disk.empty()
        return True

    campaign.later(seconds, "the full disk", empty)
    return f"{campaign.disk.folder}, for {seconds:.2f} s"


def other_clock(campaign: Campaign, rng: random.Random) -> str | None:
    """A job whose monotonic clock is ahead of everybody else's, by up to four months."""
    job = campaign.pool.start(clock=rng.randrange(1, _MOST_CLOCK_SECONDS))
    return f"{job.name}, pid {job.pid}"


def _no_disk(campaign: Campaign) -> str:
    refusal = campaign.disk.refusal
    return refusal and f"it needs a small file system, which cannot be mounted: {refusal}"


def _no_clock(_campaign: Campaign) -> str:
    """Says whether a time namespace can be made."""
    status = Path("/proc/self/status").read_text()
    rights = int(next(line for line in status.splitlines() if "CapEff" in line).split()[1], 16)
    is_possible = rights >> _CAP_SYS_ADMIN & 1 and Path("/proc/self/timens_offsets").exists()
    return "" if is_possible else "it needs Linux 5.6 and the right to make a time namespace"


KINDS = [
    Kind("full disk", 5, fill_disk, missing=_no_disk),
    Kind("job with another clock", 2, other_clock, missing=_no_clock),
]
