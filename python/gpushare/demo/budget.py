"""How much device memory the demo's jobs get together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpushare.demo.probe import Probe

CHUNK_BYTES = 2 << 20

_SLACK_BYTES = 8 << 20
"""A job that waits keeps memory that cannot be spilled: batches, and free parts of used chunks."""


def choose_budget(probe: Probe) -> int:
    """Returns a budget that one job fits in, and not with all that the others keep alive.

    Well below the sum of the peaks, so that memory has to change hands; and so low that dropping
    what is dead at a boundary does not suffice: living memory must be spilled.
    """
    slack = _SLACK_BYTES * len(probe.peak_bytes)
    largest = max(probe.peak_bytes, key=lambda name: probe.peak_bytes[name])
    others_live = sum(size for name, size in probe.live_bytes.items() if name != largest)
    budget = probe.peak_bytes[largest] + min(slack, others_live // 2)
    return (budget + CHUNK_BYTES - 1) // CHUNK_BYTES * CHUNK_BYTES
