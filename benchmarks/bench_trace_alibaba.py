"""Jobs with the durations of Alibaba's PAI cluster, more than the devices can run at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.traces import Setting, compare

if TYPE_CHECKING:
    from benchmarks.report import Report

SETTING = Setting(
    cluster="alibaba",
    jobs=2000,
    devices=100,
    load=2.0,
    seeds=5,
    # Jobs take hours: turns of a minute.
    machine={"capacity": "16GiB", "min_quantum": "60s", "max_wait": "600s"},
    paper={},
)


def run(*, quick: bool) -> Report:
    """Five seeds under each policy."""
    return compare(SETTING, quick=quick)
