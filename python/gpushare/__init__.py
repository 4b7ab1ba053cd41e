"""Lets several PyTorch processes share one device by taking turns at iteration boundaries.

    import gpushare
    gpushare.register(model)

Importing this neither imports torch nor talks to anybody: gpushare's allocator is installed as soon
as torch is loaded, and the coordinator is looked for when the first tensor needs memory. Only with
``GPUSHARE_DEVICE=any`` and several GPUs it is asked as soon as torch is loaded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gpushare.version import __version__

if TYPE_CHECKING:
    from gpushare import errors, stats
    from gpushare.job import Job, current, register
    from gpushare.policy import set_policy

__all__ = ["Job", "__version__", "current", "errors", "register", "set_policy", "stats"]

_SUBMODULES = ("errors", "stats")


def __getattr__(name: str) -> Any:
    """Loads the public names when they are first asked for."""
    import importlib

    if name in _SUBMODULES:
        return importlib.import_module(f"gpushare.{name}")
    if name in __all__:
        module = "gpushare.policy" if name == "set_policy" else "gpushare.job"
        value = getattr(importlib.import_module(module), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'gpushare' has no attribute {name!r}")


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext gpushare`` in a notebook: its kernel uses the device while a cell runs."""
    from gpushare.integrations import jupyter

    jupyter.load(shell)


def unload_ipython_extension(_shell: Any) -> None:
    """``%unload_ext gpushare``."""
    from gpushare.integrations import jupyter

    jupyter.unload()


def _start() -> None:
    """Has the allocator installed, unless the environment says to do nothing at all."""
    if os.environ.get("GPUSHARE_DISABLE") == "1":
        return
    from gpushare import _install
    from gpushare._torch import immovable

    immovable.note_import()
    _install.start()
    if os.environ.get("GPUSHARE_RUN") == "1":
        from gpushare import auto

        auto.enable()


_start()
