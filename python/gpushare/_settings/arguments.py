"""Checks the arguments of ``register``; every refusal names the value and what is allowed."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpushare._settings.settings import SETTINGS

if TYPE_CHECKING:
    import torch

    from gpushare._settings.config import Config

NONE = "none"
"""Of a limit or a deadline: takes it away."""

PAUSED = {"is_paused": True}
RESUMED = {"is_paused": False}
"""What a coordinator is asked for, as ``job_changes``."""

_BY_FIELD = {setting.field: setting for setting in SETTINGS}


def check_model(model: Any) -> torch.nn.Module | None:
    """Returns the model.

    Raises:
        ValueError: It is no module.
    """
    if model is None:
        return None
    import torch

    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"model: {_shown(model)}; allowed: a torch.nn.Module, or None")
    return model


def check_optimizers(optimizer: Any) -> list[torch.optim.Optimizer]:
    """Returns the optimizers as a list, without the wrappers of other libraries.

    Raises:
        ValueError: One of them is no torch optimizer.
    """
    if optimizer is None:
        return []
    is_several = isinstance(optimizer, Iterable)
    return [_check_optimizer(one) for one in (optimizer if is_several else [optimizer])]


def check_device(device: Any) -> str:
    """Returns the device that is asked for, "" for that of the settings.

    Raises:
        ValueError: It is not what a device is called.
    """
    return str(_choose("device", device, ""))


def wire_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of a job as messages name them (``csrc/wire/job_settings.h``).

    Args:
        options: Of ``job_options``.
    """
    return {
        "priority": options["priority"],
        "weight": options["weight"],
        "memory_limit_bytes": options["memory_limit_bytes"],
        "deadline_ns": _nanoseconds(options["deadline_seconds"]),
        "share_limit": options["share_limit"],
        "is_elastic": options["elastic_limits"],
        "iterations_total": options["iterations"],
    }


def job_options(config: Config, **given: Any) -> dict[str, Any]:
    """Returns the options of a registration, with ``profile`` in place of ``fingerprint``.

    An argument that is None comes from the settings.

    Raises:
        ValueError: A value is not allowed.
    """
    return {
        "name": _choose("name", given["name"], config.name),
        "group": _choose("group", given["group"], config.group),
        "priority": _choose("priority", given["priority"], config.priority),
        "weight": _choose("weight", given["weight"], config.weight),
        "memory_limit_bytes": _choose(
            "memory_limit", given["memory_limit"], config.memory_limit_bytes, "memory_limit_bytes"
        ),
        "deadline_seconds": _choose(
            "deadline", given["deadline"], config.deadline_seconds, "deadline_seconds"
        ),
        "share_limit": _choose("share_limit", given["share_limit"], config.share_limit),
        "elastic_limits": _choose("elastic_limits", given["elastic_limits"], config.elastic_limits),
        "elastic_threads": _choose(
            "elastic_threads", given["elastic_threads"], config.elastic_threads
        ),
        "iterations": _check_iterations(given["iterations"]),
        "profile": _choose("profile", given["profile"], config.profile),
        "gang": _check_gang(given["gang"]),
    }


def default_name() -> str:
    """Returns the script's name without its ending: "train" of ``python train.py``.

    A name that a number would be is kept whole, "3.py": jobs have numbers of their own.
    """
    script = Path(sys.argv[0] if sys.argv else "")
    # `python -m package` runs package/__main__.py; an interactive Python has no script.
    stem = script.parent.name if script.stem == "__main__" else script.stem
    if stem.isdecimal():
        stem = script.name if script.suffix else f"job-{stem}"
    return stem if stem not in ("", "-c", "-m", "-") and stem.isprintable() else "python"


def job_changes(
    *,
    priority: Any = None,
    weight: Any = None,
    memory_limit: Any = None,
    deadline: Any = None,
    share_limit: Any = None,
    elastic_limits: Any = None,
) -> dict[str, Any]:
    """Returns what a coordinator is asked to change of a job: only what is not None.

    Raises:
        ValueError: A value is not allowed, or there is none.
    """
    given = {
        "priority": _choose("priority", priority, None),
        "weight": _choose("weight", weight, None),
        "memory_limit_bytes": _choose(
            "memory_limit", _or_zero(memory_limit), None, "memory_limit_bytes"
        ),
        "deadline_ns": _nanoseconds(
            _choose("deadline", _or_zero(deadline), None, "deadline_seconds")
        ),
        "share_limit": _choose("share_limit", _or_zero(share_limit), None),
        "is_elastic": _choose("elastic_limits", elastic_limits, None),
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise ValueError(
            "nothing to change: say priority, weight, memory_limit, deadline, share_limit or "
            "elastic_limits"
        )
    return changes


def _or_zero(value: Any) -> Any:
    return 0 if value == NONE else value


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)


def _check_optimizer(optimizer: Any) -> torch.optim.Optimizer:
    import torch

    # Accelerate's and other wrappers have no hooks of their own, and call the inner one's step.
    inner = optimizer
    while not hasattr(inner, "_optimizer_step_post_hooks") and hasattr(inner, "optimizer"):
        inner = inner.optimizer
    if not isinstance(inner, torch.optim.Optimizer):
        raise ValueError(
            f"optimizer: {_shown(optimizer)}; allowed: a torch.optim.Optimizer, several, or None"
        )
    return inner


def _check_iterations(iterations: Any) -> int:
    if iterations is None:
        return 0
    if isinstance(iterations, bool) or not isinstance(iterations, int) or iterations < 1:
        raise ValueError(f"iterations: {iterations!r}; allowed: a whole number above 0, or None")
    return iterations


def _check_gang(gang: Any) -> str:
    if gang is None:
        return ""
    if not isinstance(gang, str) or not gang or not gang.isprintable():
        raise ValueError(f"gang: {gang!r}; allowed: a printable name, or None")
    return gang


def _choose(name: str, value: Any, configured: Any, field: str = "") -> Any:
    if value is None:
        return configured
    setting = _BY_FIELD[field or name]
    try:
        return setting.parse(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{name}: {value!r}; {setting.refusal(error)}") from error


def _shown(value: Any) -> str:
    return f"an object of type {type(value).__qualname__}"
