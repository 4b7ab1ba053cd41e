"""Requests of a user while jobs run. They are no faults, and put jobs into rarer states.

Each request is taken back after some seconds, since a job that is paused, or behind all others,
would not go on.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.faults.campaign import Campaign, Kind

if TYPE_CHECKING:
    from tests.faults.commands import Command
    from tests.faults.job import Job

_MOST_SECONDS = 4.0
_POLICIES = ("rr", "fifo", "srtf", "priority", "deadline", "pack")
_CHANGES = (
    (("--priority", "guaranteed"), ("--priority", "normal")),
    (("--priority", "interactive"), ("--priority", "normal")),
    (("--priority", "opportunistic"), ("--priority", "normal")),
    (("--weight", "5"), ("--weight", "1")),
    (("--deadline", "50ms"), ("--deadline", "none")),
    (("--share-limit", "0.2"), ("--share-limit", "none")),
    (("--memory-limit", "24MiB"), ("--memory-limit", "none")),
    (("--memory-limit", "12MiB", "--elastic-limits"), ("--memory-limit", "none", "--hard-limits")),
)


class _TakenBack:
    """Undoes a command by running a second one after the first has ended."""

    def __init__(self, campaign: Campaign, first: Command, words: tuple[str, ...]) -> None:
        self._campaign = campaign
        self._command = first
        self._words = words
        self._is_first = True

    def __call__(self) -> bool:
        """Whether the second command has succeeded."""
        code = self._command.process.poll()
        if code is None:
            return False
        if code == 0 and not self._is_first:
            return True
        self._is_first = False
        self._command = self._campaign.commands.gpushare(*self._words)
        return False


def pause(campaign: Campaign, rng: random.Random) -> str | None:
    """`gpushare pause`, and `resume` later."""
    seconds = rng.uniform(0.3, _MOST_SECONDS)
    job = campaign.pool.choose(rng)
    if job is None:
        return None
    first = campaign.commands.gpushare("pause", job.name)
    undo = _TakenBack(campaign, first, ("resume", job.name))
    campaign.hold(job, seconds, f"the pause of {job.name}", undo)
    return f"{job.name}, for {seconds:.2f} s"


def change(campaign: Campaign, rng: random.Random) -> str | None:
    """`gpushare set` of one property, and back."""
    seconds = rng.uniform(0.3, _MOST_SECONDS)
    there, back = rng.choice(_CHANGES)
    job = campaign.pool.choose(rng)
    if job is None:
        return None
    first = campaign.commands.gpushare("set", job.name, *there)
    _until_ended(campaign, seconds, job, _TakenBack(campaign, first, ("set", job.name, *back)))
    return f"{job.name} {' '.join(there)}, for {seconds:.2f} s"


def policy(campaign: Campaign, rng: random.Random) -> str | None:
    """`gpushare policy NAME`, and back to fair."""
    seconds = rng.uniform(0.3, _MOST_SECONDS)
    name = rng.choice(_POLICIES)
    first = campaign.commands.gpushare("policy", name)
    campaign.later(seconds, f"policy {name}", _TakenBack(campaign, first, ("policy", "fair")))
    return f"{name}, for {seconds:.2f} s"


def _until_ended(campaign: Campaign, seconds: float, job: Job, undo: _TakenBack) -> None:
    campaign.later(seconds, f"the change of {job.name}", lambda: job.has_ended() or undo())


KINDS = [
    Kind("pause", 4, pause, is_fault=False),
    Kind("set", 5, change, is_fault=False),
    Kind("policy", 3, policy, is_fault=False),
]
