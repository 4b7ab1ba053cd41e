"""Names of jobs in workers of Ray, which all run one script of Ray's own.

A version of Ray that has none of the functions that are asked here, or has not imported them, tells
no name: an AttributeError.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    # The second and third are of a process outside of a run, and of one inside a trial.
    with suppress(AttributeError, RuntimeError, DeprecationWarning), _quiet():
        return train.get_context().get_experiment_name() or ""  # type: ignore[union-attr]
    return ""


def _trial() -> str:
    tune = sys.modules.get("ray.tune")
    with suppress(AttributeError), _quiet():
        return tune.get_context().get_trial_name() or ""  # type: ignore[union-attr]
    return ""


def _actor_or_task() -> str:
    ray = sys.modules.get("ray")
    with suppress(AttributeError):
        context = ray.get_runtime_context()  # type: ignore[union-attr]
        name: str = context.get_actor_name() or context.get_task_name() or ""
        return name if context.get_actor_id() is None else name.partition(".")[0]
    return ""


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray warns a process that asks outside of a run or a trial."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
