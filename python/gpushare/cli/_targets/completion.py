"""What a shell offers where a command wants a job, a class or a policy."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from gpushare._settings import config
from gpushare._settings.settings import POLICIES, PRIORITIES
from gpushare.cli._targets.coordinators import ask_each, find_sockets
from gpushare.cli._targets.jobs import GROUP_MARK
from gpushare.errors import GpushareError

_PATIENCE_SECONDS = 0.5
"""Somebody has pressed Tab and waits."""


def completed_command() -> str:
    """Returns the command whose words a shell wants completed; "" where it wants its name, or none.

    Bash takes the mark of a group for a word of its own; here the two become one again.
    """
    if "_GPUSHARE_COMPLETE" not in os.environ:
        return ""
    words = os.environ.get("COMP_WORDS", os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()
    place = int(os.environ.get("COMP_CWORD", "0"))
    if place > 1 and words[place - 1 : place] == [GROUP_MARK]:
        words[place - 1 : place + 1] = ["".join(words[place - 1 : place + 1])]
        os.environ |= {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(place - 1)}
    return words[1] if len(words) > 1 else ""


def complete_jobs(incomplete: str) -> list[str]:
    """Returns jobs, of any user, whose name or number begins so."""
    return _beginning(incomplete, _words(_running_jobs()))


def complete_own_jobs(incomplete: str) -> list[str]:
    """Returns jobs that this user may change and whose name or number begins so."""
    return _beginning(incomplete, _words(_changeable(_running_jobs())))


def complete_own_jobs_and_groups(incomplete: str) -> list[str]:
    """Returns jobs that this user may change, and the groups of the user's own jobs."""
    jobs = _running_jobs()
    groups = {job.get("group") for job in jobs if job["uid"] == os.getuid()}
    words = [GROUP_MARK + name for name in groups if name and _is_word(name)]
    return _beginning(incomplete, [*_words(_changeable(jobs)), *words])


def complete_priorities(incomplete: str) -> list[str]:
    """Returns the classes that begin so, the highest first."""
    return [name for name in PRIORITIES if name.startswith(incomplete)]


def complete_policies(incomplete: str) -> list[str]:
    """Returns the policies that begin so, the default first."""
    return [name for name in POLICIES if name.startswith(incomplete)]


def _running_jobs() -> list[dict[str, Any]]:
    """Jobs of all coordinators. Without an answer there are none: a prompt is no place for words.

    The command itself will say what is wrong.
    """
    try:
        answers = ask_each(find_sockets(config.load()), timeout_seconds=_PATIENCE_SECONDS)
    except (GpushareError, OSError):
        return []
    return [
        job for answer in answers for device in answer.report["devices"] for job in device["jobs"]
    ]


def _changeable(jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [job for job in jobs if os.getuid() in {0, job["uid"]}]


def _words(jobs: list[dict[str, Any]]) -> list[str]:
    """Each job's name; its number where no command could find it by its name."""
    count = Counter(job["name"] for job in jobs)
    return [
        job["name"] if count[job["name"]] == 1 and _is_word(job["name"]) else str(job["job"])
        for job in jobs
    ]


def _is_word(name: str) -> bool:
    """Whether a shell takes it as it is: names are other users' words."""
    return bool(name) and all(each.isalnum() or each in "._+-/=" for each in name)


def _beginning(incomplete: str, words: list[str]) -> list[str]:
    return sorted(word for word in words if word.startswith(incomplete))
