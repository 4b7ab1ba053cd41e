"""What the callbacks for trainers have in common: the job, and its figures for a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from gpushare.job import Job


def job_for(model: torch.nn.Module, iterations: float, settings: dict[str, Any]) -> Job:
    """Returns this process's job with a model; registers it if the program has not.

    A job that ``gpushare run`` has found is registered anew: it does not know the iterations.

    Args:
        model: Its forwards are the job's.
        iterations: How many there will be; below 1 or infinite if that is not known.
        settings: Keywords of ``gpushare.register``.

    Raises:
        ValueError: A setting is not what it may be.
        GpushareError: There is no coordinator, and GPUSHARE_REQUIRE=1.
    """
    from gpushare import auto
    from gpushare.job import current, register

    job = current()
    if job is not None and not auto.is_found(job):
        return job
    is_known = 0 < iterations < float("inf")
    return register(model, iterations=int(iterations) if is_known else None, **settings)


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
