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


class Imported(NamedTuple):
    """A trace for the simulator, and what it does not have."""

    form: str
    """Whose trace it was."""
    jobs: list[TraceJob]
    left_out: list[str]
    """Kinds of jobs, each with their number and part of the GPU time."""

    def summary(self) -> str:
        """One line for people."""
        text = f"{self.form}: {len(self.jobs)} jobs"
        most = max(job.gpus for job in self.jobs)
        if most > 1:
            gangs = sum(job.gpus > 1 for job in self.jobs)
            text += f", {gangs} of them on several GPUs ({most} at most)"
        return f"{text}; left out: {', '.join(self.left_out)}" if self.left_out else text


def seconds_of(text: str) -> float:
    """Reads a time as "2017-10-07 01:12:09", in seconds since 1970; without a zone it is UTC.

    Raises:
        ValueError: It is none.
    """
    moment = datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=moment.tzinfo or timezone.utc).timestamp()


def import_jobs(form: str, jobs: Iterable[RanJob]) -> Imported:
    """Keeps the jobs that ran on GPUs, the first of which arrives at 0.

    Raises:
        ValueError: None is left.
    """
    kept: list[RanJob] = []
    lost: Counter[str] = Counter()
    lost_time: dict[str, float] = {}
    for job in jobs:
        why = _why_left_out(job)
        if not why:
            kept.append(job)
            continue
        lost[why] += 1
        lost_time[why] = lost_time.get(why, 0.0) + max(job.seconds, 0.0) * job.gpus
    whole_time = sum(job.seconds * job.gpus for job in kept) + sum(lost_time.values())
    left_out = [
        f"{number} {why} ({lost_time[why] / whole_time:.0%} of the GPU time)"
        if lost_time[why]
        else f"{number} {why}"
        for why, number in lost.most_common()
    ]
    if not kept:
        raise ValueError(f"{form}: no job is left; {', '.join(left_out) or 'empty'}")
    first = min(job.submit_seconds for job in kept)
    kept.sort(key=lambda job: job.submit_seconds)
    return Imported(form, [_row(job, first) for job in kept], left_out)


def _why_left_out(job: RanJob) -> str:
    if job.seconds <= 0:
        return "that never ran"
    if job.gpus <= 0:
        return "without a GPU"
    return ""


def _row(job: RanJob, first: float) -> TraceJob:
    iterations = job.iterations or max(1, round(job.seconds / _ITERATION_SECONDS))
    return TraceJob(
        name=_word(job.name) or "job",
        user=_word(job.user) or "unknown",
        submit_seconds=job.submit_seconds - first,
        iterations=iterations,
        iteration_seconds=max(job.seconds / iterations - job.gap_seconds, 1e-6),
        persistent_mib=job.persistent_mib,
        peak_mib=job.peak_mib,
        utilisation=job.gpus / math.ceil(job.gpus),
        gap_seconds=job.gap_seconds,
        gpus=math.ceil(job.gpus),
    )


def _word(text: str) -> str:
    """The characters that a name of a trace may have."""
    return _NOT_IN_A_NAME.sub("_", text).strip("_")
