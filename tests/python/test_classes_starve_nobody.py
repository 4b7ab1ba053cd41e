"""A job of any class beside others of any class that never end, under each policy: it ends too."""

from __future__ import annotations

import pytest

from gpushare._settings.settings import POLICIES, PRIORITIES
from gpushare.simulate import runs

WORK_SECONDS = 6
MOST_SECONDS = 420
"""Of the worst: under `pack`, beside four jobs that run side by side."""


def _trace(endless: str, late: str, num: int) -> str:
    columns = "submit,iterations,iteration,persistent,peak,name,user,priority"
    others = [f"0s,1000000,100ms,1GiB,2GiB,endless{i},one,{endless}" for i in range(num)]
    return (
        "\n".join([columns, *others, f"60s,{WORK_SECONDS * 10},100ms,1GiB,2GiB,late,two,{late}"])
        + "\n"
    )


def _seconds(policy: str, endless: str, late: str, num: int) -> float | None:
    """From when the job comes until it has done its work; None: it never has."""
    machine = {"capacity": "16GiB", "until": f"{60 + MOST_SECONDS}s"}
    (report,) = runs.run(_trace(endless, late, num), [policy], machine)
    done: dict[str, float] | None = report["completion_seconds"]
    return done["worst"] if done else None


@pytest.mark.parametrize("num", [1, 4])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_of_any_class_ends_beside_those_of_any_other(policy: str, num: int) -> None:
    table = {
        (endless, late): _seconds(policy, endless, late, num)
        for endless in PRIORITIES
        for late in PRIORITIES
        # Within a class, fifo is for whoever wants one job after the other.
        if policy != "fifo" or endless != late
    }
    for endless in PRIORITIES:
        print(policy, num, endless, [table.get((endless, late)) for late in PRIORITIES])
    assert [pair for pair, seconds in table.items() if seconds is None] == []
    assert min(seconds or 0 for seconds in table.values()) >= WORK_SECONDS * 0.99
