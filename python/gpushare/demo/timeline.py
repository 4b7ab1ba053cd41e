"""When which job computed: the spans of all jobs' iterations, on one clock."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Span = tuple[int, int]
"""Begin and end of one iteration, CLOCK_MONOTONIC ns."""


@dataclass(frozen=True)
class Timeline:
    """What the order of iterations says about turns."""

    num_switches: int
    """Times that an iteration of another job came next."""
    median_handover_ns: int | None
    """From the end of one job's iteration to the begin of another's; None without a switch."""
    num_overlaps: int
    """Iterations that began before one of another job had ended."""


def read_timeline(spans_by_job: Mapping[str, Sequence[Span]]) -> Timeline:
    """Merges the iterations of all jobs.

    Args:
        spans_by_job: Each job's iterations, in order.
    """
    merged = sorted(
        (begin, end, name) for name, spans in spans_by_job.items() for begin, end in spans
    )
    handovers_ns = []
    num_switches = num_overlaps = 0
    last_end, last_name = 0, ""
    for begin, end, name in merged:
        if last_name and name != last_name:
            num_switches += 1
            if begin < last_end:
                num_overlaps += 1
            else:
                handovers_ns.append(begin - last_end)
        if end > last_end:
            last_end, last_name = end, name
    return Timeline(
        num_switches=num_switches,
        median_handover_ns=round(statistics.median(handovers_ns)) if handovers_ns else None,
        num_overlaps=num_overlaps,
    )


def median_iteration_ns(spans: Sequence[Span]) -> float:
    """Returns the median length of a job's iterations, but for the first: it touches new memory."""
    lengths = [end - begin for begin, end in spans]
    return statistics.median(lengths[1:] or lengths)
