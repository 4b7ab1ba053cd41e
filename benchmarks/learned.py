"""How near `srtf` comes to the best order where no job says its length, and most were seen before.

A job is one of a model that its user has run before with the chance RECURRING. Its length then was
another one: as many times as long as a log-normal factor says. The earlier jobs run before the
trace begins, one after the other, and are in no figure.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from gpushare.simulate import runs
from gpushare.simulate.trace import TraceJob, to_csv

RECURRING = 0.65
ERROR = 0.3
"""Standard deviation of the logarithm of the length then over that now."""


def bound_over_srtf(made: Sequence[TraceJob], seed: int, machine: Mapping[str, str]) -> float:
    """Returns the least possible average completion over that under ``srtf``: 1 at most."""
    (alone,) = runs.run(to_csv(made), ["srtf"], machine)
    past, now = _with_past(made, random.Random(f"recurring {seed}"))
    (report,) = runs.run(to_csv([*past, *now]), ["srtf"], machine, jobs=True)
    rows = report["jobs"][len(past) :]
    if any(row["outcome"] != "finished" for row in rows):
        raise RuntimeError(f"not all jobs have ended, seed {seed}")
    sum_seconds = sum(row["finish_seconds"] - row["arrival_seconds"] for row in rows)
    return float(alone["bound_seconds"] / (sum_seconds / len(rows)))


def _with_past(
    made: Sequence[TraceJob], rng: random.Random
) -> tuple[list[TraceJob], list[TraceJob]]:
    """Returns the jobs of before, and the trace after them."""
    past: list[TraceJob] = []
    now: list[TraceJob] = []
    begin = 0.0
    for job in made:
        is_recurring = rng.random() < RECURRING
        silent = job._replace(model=job.name if is_recurring else "", says_length=False)
        now.append(silent)
        if is_recurring:
            length = max(1, round(job.iterations * rng.lognormvariate(0, ERROR)))
            before = silent._replace(submit_seconds=begin, iterations=length)
            past.append(before._replace(name=f"before.{job.name}"))
            begin += 2 * before.seconds
    return past, [job._replace(submit_seconds=job.submit_seconds + begin) for job in now]
