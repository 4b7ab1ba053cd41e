"""Which of several GPUs a process gets that leaves it open, before it starts CUDA.

The coordinator of all GPUs chooses, by what runs on each and by what was promised to others. The
chosen GPU becomes the first that CUDA shows this process, which is the one that programs use if
nobody tells them otherwise.

Only ``GPUSHARE_DEVICE=any`` leaves it open. Without that nothing is chosen: a program may be told
by number which GPU to use, as in a sweep with one for each, and numbers would mean others then.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gpushare import _native, children
from gpushare._coordinator import host_sockets
from gpushare._coordinator.client import BarredError, CoordinatorClient, RefusedError
from gpushare._settings import config as settings
from gpushare._settings import nvml
from gpushare._settings.devices import ANY, CUDA
from gpushare._torch import cuda
from gpushare.errors import CoordinatorUnreachable, GpushareError

if TYPE_CHECKING:
    from gpushare._settings.config import Config

_START_SECONDS = 5.0
_PATIENCE_SECONDS = 3.0
"""As a job that has lost its coordinator waits for the next one."""
_RETRY_SECONDS = 0.05
_RANK_VARIABLES = (
    *("LOCAL_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "HOROVOD_RANK"),
    *("MV2_COMM_WORLD_RANK", "JSM_NAMESPACE_RANK", "FLUX_TASK_RANK"),
)
_COUNT_VARIABLES = ("WORLD_SIZE", "SLURM_NTASKS")


def place() -> None:
    """Has the coordinator choose this process's GPU, where that is its to choose.

    It is not where the settings do not say so, where there are no two to choose from, and for the
    ranks of a program, which have a device each by their numbers. Where no coordinator can be
    asked, nothing is chosen: whoever connects later says what is wrong.
    """
    config = _native.settings()
    if config.device != ANY or config.socket == "none":
        return
    # A child of multiprocessing is a rank, or a worker of a job.
    if is_rank() or children.is_child() or cuda.is_started():
        return
    visible = nvml.visible_gpus()
    if len(visible) < 2:
        return
    names = [gpu.device for gpu in visible]
    try:
        device = _ask(config, visible)
    except GpushareError:
        return
    nvml.show_first(names.index(device))


def is_rank() -> bool:
    """Tells whether a launcher started this process as one of several, by its environment."""
    counts = {name: os.environ.get(name, "") for name in _COUNT_VARIABLES}
    if any(count.isdigit() and int(count) > 1 for count in counts.values()):
        return True
    return counts["WORLD_SIZE"] != "1" and any(name in os.environ for name in _RANK_VARIABLES)


def _ask(config: Config, visible: list[nvml.Gpu]) -> str:
    """Returns the device that is chosen of these.

    Raises:
        GpushareError: There is nobody to ask; or devices have coordinators of their own.
    """
    names = [gpu.device for gpu in visible]
    used = [gpu.used_bytes for gpu in visible]
    paths = settings.socket_paths(config, CUDA)
    # The machine's service may be starting anew. For a user's own nobody waits.
    end = time.monotonic() + (_PATIENCE_SECONDS if len(paths) > 1 else 0.0)
    while True:
        is_silent = False
        for path in paths:
            try:
                device = CoordinatorClient([path]).place(names, used)
            except BarredError:
                raise
            except (RefusedError, CoordinatorUnreachable):
                is_silent = True
                continue
            if device in names:
                return device
        if not is_silent or time.monotonic() >= end:
            break
        time.sleep(_RETRY_SECONDS)
    if any(len(settings.own_socket_paths(config, name)) > 1 for name in names):
        raise CoordinatorUnreachable("the machine's service has a coordinator for each device")
    gpus = host_sockets.several_gpus(config, paths[-1])
    if not gpus:
        raise CoordinatorUnreachable("the GPUs are not known here")
    arguments = settings.daemon_args_of_gpus(
        config, [(gpu.device, gpu.memory_bytes) for gpu in gpus]
    )
    _native.load().start_coordinator(
        settings.daemon_path(), paths[-1], arguments, timeout_seconds=_START_SECONDS
    )
    device = CoordinatorClient([paths[-1]]).place(names, used)
    if device not in names:
        raise CoordinatorUnreachable(f"the coordinator at {paths[-1]} has none of the devices")
    return device
