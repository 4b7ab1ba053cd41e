"""The GPUs of this machine, as the driver's management library (NVML) knows them.

It does not start CUDA: a process that has started it cannot choose its device any more, and cannot
fork children that use it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import NamedTuple

from gpushare._settings.devices import CUDA_PREFIX

_LIBRARY = "libnvidia-ml.so.1"
_SUCCESS = 0
_MOST_TEXT = 96
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_ORDER = "CUDA_DEVICE_ORDER"
_SAME_ORDER = "PCI_BUS_ID"


class Gpu(NamedTuple):
    """One of them."""

    device: str
    """Its name for gpushare: "cuda:GPU-..."."""
    memory_bytes: int
    model: str
    used_bytes: int = 0
    """By all processes, now."""

    @property
    def uuid(self) -> str:
        """What CUDA_VISIBLE_DEVICES calls it."""
        return self.device.removeprefix(CUDA_PREFIX)


class _Memory(ctypes.Structure):
    _fields_ = [
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


def list_gpus() -> list[Gpu]:
    """Returns the GPUs in the driver's order.

    There are none where the library is missing or does not answer, and where a GPU is divided
    (MIG): its parts are the devices then, and each has a coordinator of its own.
    """
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return []
    count = ctypes.c_uint()
    if library.nvmlInit_v2() != _SUCCESS:
        return []
    if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != _SUCCESS:
        return []
    found = [_describe(library, number) for number in range(count.value)]
    return [gpu for gpu in found if gpu is not None] if all(found) else []


def visible_gpus(env: Mapping[str, str] | None = None) -> list[Gpu]:
    """Returns those that CUDA will show this process, in its order; none where that is not known.

    CUDA numbers GPUs of several models by their speed unless ``CUDA_DEVICE_ORDER`` is
    ``PCI_BUS_ID``, and the driver does not. So numbers mean something only where that is set, or
    all are of one model.

    Args:
        env: The environment; this process's unless given.
    """
    env = os.environ if env is None else env
    gpus = list_gpus()
    text = env.get(_VISIBLE)
    is_one_order = len({gpu.model for gpu in gpus}) < 2 or env.get(_ORDER) == _SAME_ORDER
    if text is None:
        return gpus if is_one_order else []
    words = [word.strip() for word in text.split(",")]
    if not is_one_order and any(word.isdigit() for word in words):
        return []
    found = [_of_word(word, gpus) for word in words]
    chosen = [gpu for gpu in found if gpu is not None]
    return chosen if all(found) and len(set(chosen)) == len(chosen) else []


def show_first(place: int) -> None:
    """Makes one of the visible GPUs the first that CUDA shows this process and its children.

    Those after it follow, and then those that were before it, so a program that uses several finds
    as many, and neighbours stay neighbours. The words in CUDA_VISIBLE_DEVICES are those that were
    there, or numbers: programs read them. CUDA must not have been started.

    Args:
        place: Its index in ``visible_gpus()``. With 0 nothing changes.
    """
    if place == 0:
        return
    text = os.environ.get(_VISIBLE)
    words = [str(number) for number in range(len(list_gpus()))] if text is None else text.split(",")
    os.environ[_VISIBLE] = ",".join(words[place:] + words[:place])


def _of_word(word: str, gpus: list[Gpu]) -> Gpu | None:
    """Returns the GPU of a word in CUDA_VISIBLE_DEVICES: a number, or the beginning of a UUID."""
    if word.isdigit():
        return gpus[int(word)] if int(word) < len(gpus) else None
    named = [gpu for gpu in gpus if word and gpu.uuid.startswith(word)]
    return named[0] if len(named) == 1 else None


def _describe(library: ctypes.CDLL, number: int) -> Gpu | None:
    """Returns one GPU; None where it does not say all, or is divided."""
    handle = ctypes.c_void_p()
    uuid, model = (ctypes.create_string_buffer(_MOST_TEXT) for _ in range(2))
    memory = _Memory()
    codes = [
        library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)),
        library.nvmlDeviceGetUUID(handle, uuid, _MOST_TEXT),
        library.nvmlDeviceGetName(handle, model, _MOST_TEXT),
        library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)),
    ]
    if any(code != _SUCCESS for code in codes) or _is_divided(library, handle):
        return None
    name = CUDA_PREFIX + uuid.value.decode().lower().replace("gpu-", "GPU-", 1)
    return Gpu(name, memory.total, model.value.decode(errors="replace"), memory.used)


def _is_divided(library: ctypes.CDLL, handle: ctypes.c_void_p) -> bool:
    now, later = ctypes.c_uint(), ctypes.c_uint()
    mode = getattr(library, "nvmlDeviceGetMigMode", None)  # older libraries know no parts
    if mode is None or mode(handle, ctypes.byref(now), ctypes.byref(later)) != _SUCCESS:
        return False  # GPUs that cannot be divided do not say
    return bool(now.value)
