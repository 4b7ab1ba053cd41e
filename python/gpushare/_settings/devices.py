"""What devices are called, and what their coordinators' sockets are.

A device's name is "cpu", or "cuda:" and the UUID that the driver gives a GPU ("GPU-...") or a part
of one ("MIG-..."): see ``csrc/wire/device_name.h``. People may say "cuda" or "cuda:1" instead;
which device that is, only a process that has torch knows. A coordinator may divide the CPU's memory
into several devices, "cpu:0" and so on; it places a job that says "cpu" on one of them. "cuda"
alone is also all CUDA devices of a machine, where one coordinator has them.
"""

from __future__ import annotations

import os
import re
from typing import Any

CPU = "cpu"
CUDA = "cuda"
CUDA_PREFIX = f"{CUDA}:"
AUTO = "auto"
"""A CUDA device where torch sees one, else the CPU."""
ANY = "any"
"""Any device of the coordinator, which chooses it."""
WISHES = "auto, any, cpu, cpu:NUMBER, cuda, cuda:NUMBER, or cuda:UUID as nvidia-smi -L says"

_HEX = "[0-9a-f]"
_CUDA_NAME = re.compile(
    rf"cuda:(?:GPU|MIG)-{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
)
_CPU_NAME = re.compile(r"cpu(:([0-9]|[1-5][0-9]|6[0-3]))?")
_CUDA_NUMBER = re.compile(r"cuda(:[0-9]{1,3})?")


def is_device_name(text: str) -> bool:
    """Tells whether this names one device, whichever process asks."""
    return is_cpu(text) or _CUDA_NAME.fullmatch(text) is not None


def is_cpu(text: str) -> bool:
    """Tells whether this names the CPU, or one of the devices that it is divided into."""
    return _CPU_NAME.fullmatch(text) is not None


def kind_of(device_name: str) -> str:
    """Returns "cpu" or "cuda"."""
    return CPU if is_cpu(device_name) else CUDA


def parse_wish(value: Any) -> str:
    """Returns a device as people say it: a device's name, or one of the words in ``WISHES``.

    Raises:
        ValueError: It is none.
    """
    is_word = value in {AUTO, ANY} or (isinstance(value, str) and _CUDA_NUMBER.fullmatch(value))
    if not is_word and not (isinstance(value, str) and is_device_name(value)):
        raise ValueError(value)
    return str(value)


def shown_wish(wish: str) -> str:
    """Returns a wished device for an error text: with the variable, if that is where it is from."""
    variable = "GPUSHARE_DEVICE"
    return f"{variable}={wish}" if os.environ.get(variable) == wish else f'device "{wish}"'


def socket_name(device_name: str) -> str:
    """Returns the file name of a device's socket, as ``csrc/daemon/config/paths.h`` makes it.

    "cuda" is for all CUDA devices that one coordinator has.
    """
    return "sock" if is_cpu(device_name) else f"{device_name.removeprefix(CUDA_PREFIX)}.sock"


def device_of_socket(name: str) -> str:
    """Returns the CUDA device whose socket has this file name, "cuda" for that of all, or ""."""
    if name == socket_name(CUDA):
        return CUDA
    device = CUDA_PREFIX + name.removesuffix(".sock")
    return device if name.endswith(".sock") and is_device_name(device) else ""


def label(device_name: str) -> str:
    """Returns how a screen calls a device: "CPU", "CUDA GPU-..."."""
    kind, _, uuid = device_name.partition(":")
    return f"{kind.upper()} {uuid}".strip()
