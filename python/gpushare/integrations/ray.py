"""Names of jobs in workers of Ray, which all run one script of Ray's own."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from gpushare._settings.settings import parse_job_name

_WORKER_SCRIPT = "default_worker.py"


def work_name() -> str:
    """Returns what Ray calls the work of this process, for a job's name.

    That is the name of a Tune trial, of a run of Ray Train, of an actor or its class, or of a task.
    It is "" outside of Ray's workers, and where Ray tells no name that a job may have.
    """
    if not sys.argv or Path(sys.argv[0]).name != _WORKER_SCRIPT:
        return ""
    name = _run() or _trial() or _actor_or_task()
    try:
        return parse_job_name(name)
    except ValueError:
        return ""


def _run() -> str:
    """The experiment of Ray Train, for a rank of it."""
    train = sys.modules.get("ray.train")
    if train is None:
        return ""
    try:
        name: str = train.get_context().get_experiment_name()
    except (RuntimeError, DeprecationWarning):  # outside of a run, in a trial
        return ""
    return name or ""


def _trial() -> str:
    tune = sys.modules.get("ray.tune")
    if tune is None:
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this is no trial
        return tune.get_context().get_trial_name() or ""


def _actor_or_task() -> str:
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return ""
    context = ray.get_runtime_context()
    name: str = context.get_actor_name() or context.get_task_name() or ""
    return name if context.get_actor_id() is None else name.partition(".")[0]
