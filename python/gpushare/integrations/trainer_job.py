"""What the callbacks for trainers have in common: the job, and its figures for a log."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from gpushare._settings import arguments

if TYPE_CHECKING:
    import torch

    from gpushare.job import Job


class TrainerJob:
    """This process's job, as a trainer's callback sees it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Registers nothing yet.

        Args:
            settings: Keywords of ``gpushare.register``.

        Raises:
            TypeError: There is no such keyword. It is said here, since the first batch comes late.
            ValueError: A setting is not what it may be.
        """
        from gpushare.job import register

        inspect.signature(register).bind(None, iterations=None, **settings)
        arguments.check_settings(settings)
        self._settings = settings
        self._own: Job | None = None
        """The last one that was registered here."""
        self._has_length = False
        """Whether that one said how many iterations it makes."""

    def get(self, model: torch.nn.Module, iterations: float = 0) -> Job:
        """Returns the process's job; registers it if the program has not.

        The number of iterations can be told at registration alone. So with a number, a job that was
        registered here, or found by ``gpushare run``, gives its place to one that says it.

        Args:
            model: Its forwards are the job's.
            iterations: How many there will be; below 1 or infinite if that is not known.

        Raises:
            ValueError: A setting is not what it may be.
            GpushareError: There is no coordinator, and GPUSHARE_REQUIRE=1.
        """
        from gpushare import auto, report
        from gpushare.job import current, register

        job = current()
        is_known = 0 < iterations < float("inf")
        if job is not None:
            is_own = job is self._own
            if not is_own and not auto.is_found(job):
                return job
            if is_own and not is_known:
                return job
            if not (is_own and self._has_length):
                report.forget(job)  # it has hardly begun, and its end would be one report too many
        total = int(iterations) if is_known else None
        self._own, self._has_length = register(model, iterations=total, **self._settings), is_known
        return self._own


def figures(job: Job) -> dict[str, float]:
    """Returns what a trainer's log is to show of the job; nothing of an unmanaged one."""
    if not job.is_managed:
        return {}
    stats = job.stats()
    return {
        "gpushare/waited_seconds": stats.waited_seconds,
        "gpushare/switching_seconds": stats.moving_seconds,
        "gpushare/active_seconds": job.active_seconds,
        "gpushare/spilled_bytes": float(stats.spilled_total_bytes),
        "gpushare/restored_bytes": float(stats.restored_total_bytes),
    }
