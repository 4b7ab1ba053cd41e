"""Memory that moves: how much, how fast, and what it costs jobs that do not fit together.

`moved_over_least_K_X`: K jobs that hold X times the capacity at their boundaries take short turns;
bytes spilled a round over the least that any choice could have spilled (`least_moves`, exact);
`lru_over_least_K_X` the same for least-recently-used order on the same sizes and turns.

`*_over_copy_*`: bandwidth over that of a plain copy between memory, or calls on a file, of the same
kind and state (`memory_bandwidth`); `*_over_cached_copy_file` over a copy that stays in the page
cache, where the host tier's file goes past it. `cores_of_*`: processor time of all threads over the
time of such a move. `both_over_one`: a spill and another process's restore at once.

`*_over_serial`: time of jobs that share the device over the same jobs one after the other, each
alone with all of it (`memory_sharing`). `late_over_whole`: time of two jobs whose optimizer state
follows their leases over that of two that wait for all of their memory (`memory_late`).
"""

from __future__ import annotations

from benchmarks import memory_bandwidth, memory_late, memory_sharing, memory_turns
from benchmarks.report import Report


def run(*, quick: bool) -> Report:
    """All of it: about eight minutes."""
    report = Report(name="memory")
    for part in (memory_turns, memory_bandwidth, memory_sharing, memory_late):
        part.measure(report, quick=quick)
    return report
