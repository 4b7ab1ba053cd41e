"""Checks the arguments of ``register``; every refusal names the value and what is allowed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpushare._settings.settings import BY_ARGUMENT, SETTINGS, Setting

if TYPE_CHECKING:
    import torch

    from gpushare._settings.config import Config

NONE = "none"
"""Of one of ``_LIMITS``: takes it away."""

PAUSED = {"is_paused": True}
RESUMED = {"is_paused": False}
"""What a coordinator is asked for, as ``job_changes``."""

_LIMITS = ("memory_limit", "deadline", "share_limit")


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
    return str(_choose(BY_ARGUMENT["device"], device, ""))


def wire_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of a job as messages name them (``csrc/wire/job_settings.h``).

    Args:
        options: Of ``job_options``.
    """
    said = {
        each.message: _in_message(each, options[each.field]) for each in SETTINGS if each.message
    }
    return said | {"iterations_total": options["iterations"]}


def job_options(config: Config, **given: Any) -> dict[str, Any]:
    """Returns the options of a registration, with ``profile`` in place of ``fingerprint``.

    An argument that is None comes from the settings.

    Raises:
        ValueError: A value is not allowed.
    """
    options = {
        "iterations": _check_iterations(given.pop("iterations")),
        "gang": _check_gang(given.pop("gang")),
    }
    for name, value in given.items():
        setting = BY_ARGUMENT[name]
        options[setting.field] = _choose(setting, value, getattr(config, setting.field))
    return options


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


def check_settings(given: Mapping[str, Any]) -> None:
    """Checks settings of a job that are kept until a job is registered.

    Args:
        given: Keywords of ``register``; those that are no settings are not looked at.

    Raises:
        ValueError: A value is not allowed.
    """
    for name, value in given.items():
        if name in BY_ARGUMENT:
            _choose(BY_ARGUMENT[name], value, None)


def job_changes(**given: Any) -> dict[str, Any]:
    """Returns what a coordinator is asked to change of a job: only what is not None.

    Args:
        given: The settings that ``gpushare set`` changes, by their keywords.

    Raises:
        ValueError: A value is not allowed, or there is none.
    """
    changes = {}
    for name, value in given.items():
        if value is not None:
            setting = BY_ARGUMENT[name]
            chosen = _choose(setting, _or_zero(value) if name in _LIMITS else value, None)
            changes[setting.message] = _in_message(setting, chosen)
    if not changes:
        *most, last = (each.argument for each in SETTINGS if each.message)
        raise ValueError(f"nothing to change: say {', '.join(most)} or {last}")
    return changes


def _or_zero(value: Any) -> Any:
    return 0 if value == NONE else value


def _in_message(setting: Setting, value: Any) -> Any:
    """Messages have times in nanoseconds."""
    return round(value * 1e9) if setting.message.endswith("_ns") else value


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


def _choose(setting: Setting, value: Any, configured: Any) -> Any:
    if value is None:
        return configured
    try:
        return setting.parse(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{setting.argument}: {value!r}; {setting.refusal(error)}") from error


def _shown(value: Any) -> str:
    return f"an object of type {type(value).__qualname__}"
