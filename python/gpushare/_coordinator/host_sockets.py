"""Where a job on a CUDA device finds its coordinator, and what is started if it finds none.

On a machine with several GPUs one coordinator has all of them: it places jobs that name none, and
lets programs on several devices stop and go as one. It listens at ``cuda.sock``. A device may have
a coordinator of its own instead, at a socket with its name: of a service that was installed so, of
an older version, of a part of a GPU (MIG), or where only one GPU is to be seen.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpushare._coordinator.client import BarredError, CoordinatorClient, RefusedError
from gpushare._settings import config as settings
from gpushare._settings.devices import CUDA
from gpushare._settings.nvml import Gpu, list_gpus, visible_gpus
from gpushare.errors import CoordinatorUnreachable

if TYPE_CHECKING:
    from gpushare._settings.config import Config

_ANSWER_SECONDS = 5.0


def find_sockets(config: Config, device: str) -> list[str]:
    """Returns a CUDA device's sockets to try, in order; a coordinator is started at the last.

    Args:
        config: The settings.
        device: "cuda:" and a UUID.
    """
    if config.socket:
        return settings.socket_paths(config, device)
    paths = settings.socket_paths(config, CUDA)
    has_others = False
    for place, path in enumerate(paths):
        if not os.path.lexists(path):
            continue
        try:
            has_device = CoordinatorClient([path], _ANSWER_SECONDS).place([device]) == device
        except BarredError:
            return [path]  # who connects is told so
        except (RefusedError, CoordinatorUnreachable):
            continue  # it ends, starts anew, or is asked too much
        if has_device:
            return paths[place:]
        has_others = True
    own = settings.own_socket_paths(config, device)
    if has_others or len(own) > 1 or _answers(own[-1]):
        return own
    return paths if len(paths) > 1 or several_gpus(config, paths[-1], device) else own


def several_gpus(config: Config, socket_path: str, device: str = "") -> list[Gpu]:
    """Returns the GPUs of a coordinator that is to be started at a socket; none: it has one device.

    At a socket that somebody has named it has those that the process sees: who names several
    sockets divides the GPUs among them.

    Args:
        config: The settings.
        socket_path: Where.
        device: The device of the job that starts it, which has to be one of them.
    """
    if settings.is_of_one_device(socket_path):
        return []
    gpus = visible_gpus() if config.socket else list_gpus()
    has_device = not device or any(gpu.device == device for gpu in gpus)
    return gpus if has_device and len(gpus) > 1 else []


def _answers(path: str) -> bool:
    """Tells whether somebody listens at a socket."""
    if not os.path.lexists(path):
        return False
    try:
        connection, _ = CoordinatorClient([path], _ANSWER_SECONDS).connect()
    except CoordinatorUnreachable:
        return False
    connection.close()
    return True
