"""A job beside others that never end, of any classes and deadlines: it ends under each policy."""

from __future__ import annotations

import pytest

from gpushare._settings.settings import POLICIES, PRIORITIES
from gpushare.simulate import runs

WORK_SECONDS = 6
MOST_SECONDS = 420
"""Of the worst: under `pack`, beside four jobs that run side by side."""


COLUMNS = "submit,iterations,iteration,persistent,peak,name,user,priority,weight,deadline"


def _seconds(policy: str, endless: str, late: str, num: int) -> float | None:
    """From when the job comes until it has done its work; None: it never has.

    Jobs are told by their last columns.
    """
    rows = [f"0s,1000000,100ms,1GiB,2GiB,endless{i},one,{endless}" for i in range(num)]
    rows.append(f"60s,{WORK_SECONDS * 10},100ms,1GiB,2GiB,late,two,{late}")
    machine = {"capacity": "16GiB", "until": f"{60 + MOST_SECONDS}s"}
    (report,) = runs.run("\n".join([COLUMNS, *rows, ""]), [policy], machine)
    done: dict[str, float] | None = report["completion_seconds"]
    return done["worst"] if done else None


@pytest.mark.parametrize("num", [1, 4])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_job_of_any_class_ends_beside_those_of_any_other(policy: str, num: int) -> None:
    table = {
        (endless, late): _seconds(policy, f"{endless},1,", f"{late},1,", num)
        for endless in PRIORITIES
        for late in PRIORITIES
        # Within a class, fifo is for whoever wants one job after the other.
        if policy != "fifo" or endless != late
    }
    for endless in PRIORITIES:
        print(policy, num, endless, [table.get((endless, late)) for late in PRIORITIES])
    assert [pair for pair, seconds in table.items() if seconds is None] == []
    assert min(seconds or 0 for seconds in table.values()) >= WORK_SECONDS * 0.99


@pytest.mark.parametrize("num", [1, 4])
@pytest.mark.parametrize("late", ["1,", "0.000001,", "1,900000s"])
@pytest.mark.parametrize("endless", ["1,1ms", "1,200ms", "1000,"])
def test_deadlines_that_ask_for_more_than_all_time_keep_nobody_out(
    endless: str, late: str, num: int
) -> None:
    assert _seconds("deadline", f"normal,{endless}", f"normal,{late}", num) is not None
