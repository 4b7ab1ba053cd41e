"""What this machine really ran, from the accounts of its finished jobs (docs/accounts.md)."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from gpushare.cli.units import format_span
from gpushare.simulate.imports.ran_job import RanJob, shown

FORM = "the accounts of this machine"
_MIB = 1 << 20


def read(rows: Iterable[dict[str, Any]]) -> Iterator[RanJob]:
    """Yields jobs as they would have been alone: without their waits and their switching.

    Accounts do not tell which part of its peak a job kept between iterations. All of it is taken to
    be kept, so the most is moved that may have been.

    Args:
        rows: With the columns of ``gpushare history``.
    """
    for row in rows:
        name = f"{row['name']}.{row['id'][:6]}"
        alone = row["wall_seconds"] - row["waited_seconds"] - row["switching_seconds"]
        iterations = row["iterations"]
        peak = -(-row["peak_bytes"] // _MIB)
        yield RanJob(
            name=name,
            user=row["user"],
            submit_seconds=datetime.fromisoformat(row["start"]).timestamp(),
            seconds=alone if iterations else 0.0,
            gpus=1,
            iterations=iterations,
            gap_seconds=max(alone - row["busy_seconds"], 0.0) / max(iterations, 1),
            persistent_mib=peak,
            peak_mib=peak,
            place=f"job {shown(name)}",
        )


def num_devices(rows: Iterable[dict[str, Any]]) -> int:
    """Returns on how many devices they ran."""
    return len({(row["host"], row["device"]) for row in rows})


def as_it_was(rows: Sequence[dict[str, Any]]) -> str:
    """What their users saw, in one line beside which simulated figures can be read."""
    times = sorted(row["wall_seconds"] for row in rows if row["iterations"])
    average, median = statistics.fmean(times), statistics.median(times)
    policies = ", ".join(sorted({row["policy"] for row in rows if row["iterations"]}))
    return (
        f"as it was (under {policies}): completion, average {format_span(average)}, "
        f"median {format_span(median)}, worst {format_span(times[-1])}"
    )
