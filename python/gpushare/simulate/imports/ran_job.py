"""What other traces say of a job, and how a trace of the simulator is made of it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import NamedTuple

from gpushare.simulate.trace import TraceJob

_ITERATION_SECONDS = 0.1
"""Of a job whose trace tells nothing of iterations."""
_LEAST_ITERATION_SECONDS = 1e-6
"""Of the form in which the simulator's trace is written."""
_MOST_SECONDS = 1e9
_ALLOWED = {
    "seconds": ("it runs {} s", 0.0, _MOST_SECONDS),
    "gpus": ("it has {} GPUs", 0.001, 1e6),
    "iterations": ("it has {} iterations", 0, 1e15),
    "gap_seconds": ("its gaps are {} s", 0.0, _MOST_SECONDS),
    "persistent_mib": ("it keeps {} MiB", 0, 1 << 30),
    "peak_mib": ("it has {} MiB", 0, 1 << 30),
}
"""What the simulator can count (``csrc/sim/scenario``), of each number of a job."""
_MOST_NAME = 128
"""Characters, as ``kMaxNameBytes`` in ``csrc/wire/limits.h``."""
_MOST_SHOWN = 40
"""Characters of a text that was read, in an error."""
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class RanJob(NamedTuple):
    """A job as it ran on some cluster."""

    name: str
    user: str
    submit_seconds: float
    """On any clock."""
    seconds: float
    """How long it ran, by itself on its devices."""
    gpus: float
    """How many; may be a fraction. A job with 1.5 is taken to have two and to use 3/4 of each."""
    iterations: int = 0
    """0: not known."""
    gap_seconds: float = 0.0
    """From an iteration to the next, in which the device is not used."""
    persistent_mib: int = 0
    peak_mib: int = 0
    place: str = ""
    """Where it stands in what was read, as "line 3", for errors."""


class Imported(NamedTuple):
    """A trace for the simulator, and what it does not have."""

    form: str
    """Whose trace it was."""
    jobs: list[TraceJob]
    left_out: list[str]
    """Kinds of jobs, each with their number."""

    def summary(self) -> str:
        """One line for people."""
        text = f"{self.form}: {len(self.jobs)} jobs"
        most = max(job.gpus for job in self.jobs)
        if most > 1:
            gangs = sum(job.gpus > 1 for job in self.jobs)
            text += f", {gangs} of them on several GPUs ({most} at most)"
        return f"{text}; left out: {', '.join(self.left_out)}" if self.left_out else text


def shown(text: str) -> str:
    """Returns what was read in quotes, for an error: the begin of a long text."""
    return repr(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}...")


def seconds_of(text: str, what: str) -> float:
    """Reads a time as "2017-10-07 01:12:09", in seconds since 1970; without a zone it is UTC.

    Args:
        text: The time.
        what: Its name in the trace, for the error.

    Raises:
        ValueError: It is none.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"{what}: {shown(text)} is not a time such as 2017-10-07 01:12:09"
        ) from None
    return moment.replace(tzinfo=moment.tzinfo or timezone.utc).timestamp()


def import_jobs(form: str, jobs: Iterable[RanJob]) -> Imported:
    """Keeps the jobs that ran on GPUs, the first of which arrives at 0.

    Raises:
        ValueError: None is left, or one has a number that cannot be simulated; the text says
            which, and what is allowed.
    """
    kept: list[RanJob] = []
    lost: Counter[str] = Counter()
    for job in jobs:
        why = _why_left_out(job)
        if why:
            lost[why] += 1
            continue
        _check(form, job)
        kept.append(job)
    left_out = [f"{number} {why}" for why, number in lost.most_common()]
    if not kept:
        raise ValueError(f"{form}: no job is left; {', '.join(left_out) or 'empty'}")
    kept.sort(key=lambda job: job.submit_seconds)
    return Imported(form, [_row(form, job, kept[0]) for job in kept], left_out)


def _why_left_out(job: RanJob) -> str:
    if job.seconds <= 0:
        return "that never ran"
    if job.gpus <= 0:
        return "without a GPU"
    return ""


def _check(form: str, job: RanJob) -> None:
    for name, (what, least, most) in _ALLOWED.items():
        number = getattr(job, name)
        if not least <= number <= most:  # nan is refused too
            raise ValueError(
                f"{form}: {job.place}: {what.format(f'{number:.3g}')}, "
                f"allowed are {least:g} to {most:g}"
            )


def _row(form: str, job: RanJob, first: RanJob) -> TraceJob:
    """Makes the simulator's row of a job that was checked, and whose trace begins with ``first``.

    Raises:
        ValueError: It comes or ends too late.
    """
    submit_seconds = job.submit_seconds - first.submit_seconds
    if not submit_seconds <= _MOST_SECONDS:
        raise ValueError(
            f"{form}: {job.place}: it comes {submit_seconds:.3g} s after the first job "
            f"({first.place}), allowed are {_MOST_SECONDS:g} s"
        )
    iterations = job.iterations or max(1, round(job.seconds / _ITERATION_SECONDS))
    # As they are written: to the microsecond.
    gap_seconds = round(job.gap_seconds, 6)
    iteration_seconds = max(
        round(job.seconds / iterations - job.gap_seconds, 6), _LEAST_ITERATION_SECONDS
    )
    row = TraceJob(
        name=_word(job.name) or "job",
        user=_word(job.user) or "unknown",
        submit_seconds=submit_seconds,
        iterations=iterations,
        iteration_seconds=iteration_seconds,
        persistent_mib=job.persistent_mib,
        peak_mib=job.peak_mib,
        utilisation=job.gpus / math.ceil(job.gpus),
        gap_seconds=gap_seconds,
        gpus=math.ceil(job.gpus),
    )
    if not row.seconds <= _MOST_SECONDS:
        raise ValueError(
            f"{form}: {job.place}: its {iterations:.3g} iterations of at least 1 us take "
            f"{row.seconds:.3g} s with their gaps, allowed are {_MOST_SECONDS:g} s"
        )
    return row


def _word(text: str) -> str:
    """The characters that a name of a trace may have, and as many as it may have."""
    return _NOT_IN_A_NAME.sub("_", text).strip("_")[:_MOST_NAME]
