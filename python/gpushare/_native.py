"""This process's compiled module and settings, and what is installed; explains a failed load."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from gpushare._coordinator.identity import REINSTALL
from gpushare._settings.config import Config, load_readable, socket_paths
from gpushare._settings.devices import CPU
from gpushare.errors import ConfigError, GpushareError


class Installed(NamedTuple):
    """What ``_install.py`` has installed."""

    device: str
    """The name of the device that this process shares."""
    cuda_index: int
    """torch's number of it; below 0: it is no CUDA device."""
    owner_pid: int
    """The process that installed; a forked child may install anew."""
    sockets: tuple[str, ...]
    """Where it looks for its coordinator, in order."""


_config: Config | None = None
_config_error: ConfigError | None = None
"""Something in the settings is wrong: this process goes on as if it had no coordinator."""
_installed = Installed(CPU, -1, 0, ())


def refuse_bad_settings() -> None:
    """Raises what is wrong in the settings.

    Raises:
        ConfigError: A setting is wrong.
    """
    settings()
    if _config_error is not None:
        raise _config_error


def choose(config: Config) -> None:
    """Takes these settings in place of those that were read."""
    global _config
    _config = config


def note_installed(device: str, cuda_index: int, sockets: Sequence[str]) -> None:
    """This process shares the device from now on, and looks for its coordinator there."""
    global _installed
    _installed = Installed(device, cuda_index, os.getpid(), tuple(sockets))


def settings() -> Config:
    """Returns the settings of this process, read once; what is wrong in them counts as not set."""
    global _config, _config_error
    if _config is None:
        _config, _config_error = load_readable()
    return _config


def load() -> ModuleType:
    """Returns the compiled module; torch is imported if it is not yet.

    Raises:
        GpushareError: It cannot be loaded; the text says why and what helps.
    """
    native = sys.modules.get("gpushare._C")
    if native is not None:
        return native
    import torch  # noqa: F401 - brings libc10, which the module is linked with

    _check_torch()
    try:
        from gpushare import _C
    except ImportError as error:
        raise GpushareError(_explain_failed_load(error)) from error
    return sys.modules[_C.__name__]


def is_installed() -> bool:
    """Tells whether gpushare's allocator makes this process's CPU tensors."""
    native = sys.modules.get("gpushare._C")
    return native is not None and bool(native.is_installed())


def is_forked_child() -> bool:
    """Tells whether this process was forked from one that had installed, and has not itself."""
    return _installed.owner_pid not in (0, os.getpid())


def device() -> str:
    """Returns the name of the device that this process shares."""
    return _installed.device


def sockets() -> list[str]:
    """Returns where this process looks for its coordinator, in order."""
    return list(_installed.sockets) or socket_paths(settings(), _installed.device)


def cuda_index() -> int:
    """Returns torch's number of the CUDA device that this process shares, below 0 if it is none."""
    return _installed.cuda_index


def _check_torch() -> None:
    """Before the module is loaded: a loader's words on another torch are of symbols."""
    import torch

    try:
        from gpushare import _built
    except ImportError:
        return  # no build is here, or an unusual one; loading shows it
    found = ".".join(torch.__version__.split(".")[:2])
    if found != _built.TORCH:
        raise GpushareError(
            f"built for torch {_built.TORCH}, found {found}. Have that torch here (pip install "
            f'"torch=={_built.TORCH}.*") or build for this one (in gpushare\'s sources {REINSTALL})'
        )


def _explain_failed_load(error: ImportError) -> str:
    from gpushare._coordinator.identity import WRONG_PACKAGE, is_stranger_installed

    if is_stranger_installed():
        return WRONG_PACKAGE
    folder = Path(__file__).parent
    built = sorted(path.name for path in folder.glob("_C*.so"))
    wanted = f"_C.{sys.implementation.cache_tag}"
    if not built:
        return f"the compiled module is not in {folder}; in gpushare's sources {REINSTALL}"
    if not any(name.startswith((wanted, "_C.abi3")) for name in built):
        return f"the compiled module is for another Python: found {', '.join(built)}, want {wanted}"
    return f"the compiled module in {folder} does not load: {error}"
