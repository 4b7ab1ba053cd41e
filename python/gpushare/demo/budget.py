"""How much device memory the demo's jobs get together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpushare.demo.probe import Probe

CHUNK_BYTES = 2 << 20

_SLACK_BYTES = 2 * CHUNK_BYTES
"""A job: for batches made while it has no lease, and for a peak that differs by a chunk or two."""


def choose_budget(probe: Probe) -> int:
    """Returns a budget that one job fits in, and not with all that the others keep alive.

    Well below the sum of the peaks, so that memory has to change hands; and so low that dropping
    what is dead at a boundary does not suffice: living memory must be spilled. But one of the
    others may keep all it has: a job that has just given its lease back makes its next batch, and
    its memory cannot be moved until it waits.
    """
    largest = max(probe.peak_bytes, key=lambda name: probe.peak_bytes[name])
    others = [size for name, size in probe.live_bytes.items() if name != largest]
    room = max(others) + _SLACK_BYTES * len(probe.peak_bytes)
    # Where models are so small that this would hold everything, three quarters of it.
    budget = probe.peak_bytes[largest] + min(room, sum(others) * 3 // 4)
    return (budget + CHUNK_BYTES - 1) // CHUNK_BYTES * CHUNK_BYTES
