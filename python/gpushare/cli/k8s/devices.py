"""Which devices the coordinators of this node share, and whether each is healthy.

A device is known from the first time that its coordinator answers. It is unhealthy while its
coordinator does not answer or no longer has it, or while the driver no longer has the GPU. Its
slots stay in the list, so the kubelet starts no container on it and ends none.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gpushare._coordinator.client import CoordinatorClient
from gpushare._settings.devices import CUDA_PREFIX, device_of_socket, is_device_name
from gpushare.admin.gpus import GpuError, find_gpus
from gpushare.cli.k8s.slots import Device
from gpushare.errors import GpushareError
from gpushare.printable import printable

_ANSWER_SECONDS = 2.0
_GPU_CHECK_SECONDS = 60.0
"""Between two questions to ``nvidia-smi``, which may take a second."""
_GPU = f"{CUDA_PREFIX}GPU-"
"""How a whole GPU's name begins. ``nvidia-smi`` does not list the parts of a divided one so."""


class DeviceTable:
    """The devices as last seen. Several threads may read it; one looks anew."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._version = 0
        self._devices: dict[str, Device] = {}

    def devices(self) -> dict[str, Device]:
        """Returns the devices by name."""
        with self._changed:
            return dict(self._devices)

    def update(self, seen: dict[str, Device]) -> None:
        """Replaces the devices, and wakes the waiting threads if anything is different.

        Args:
            seen: The healthy devices. Every other known device becomes unhealthy.
        """
        with self._changed:
            known = {
                name: Device(name, each.socket, is_healthy=False)
                for name, each in self._devices.items()
            }
            devices = dict(sorted({**known, **seen}.items()))
            if devices != self._devices:
                self._devices = devices
                self._version += 1
                self._changed.notify_all()

    def wake(self) -> None:
        """Makes each waiting thread ask again whether it is to go on waiting."""
        with self._changed:
            self._changed.notify_all()

    def wait_newer(self, version: int, is_wanted: Callable[[], bool]) -> tuple[int, list[Device]]:
        """Waits until there is a newer version of the table, or the caller need not wait.

        Args:
            version: The version that the caller has; -1 for none.
            is_wanted: Whether to go on waiting. Whoever changes that calls ``wake``.

        Returns:
            The version now, and its devices.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._version != version or not is_wanted())
            return self._version, list(self._devices.values())


class Scout:
    """Looks for devices in a folder of sockets."""

    def __init__(self, folder: str) -> None:
        """Remembers the folder.

        Args:
            folder: Where the coordinators listen.
        """
        self._folder = Path(folder)
        self._gpus: set[str] | None = None
        self._next_gpu_check = 0.0

    def look(self) -> dict[str, Device]:
        """Returns the healthy devices by name."""
        gpus = self._gpus_now()
        seen = {}
        for path in self._sockets():
            for name in _devices_at(path):
                if gpus is None or not name.startswith(_GPU) or name in gpus:
                    seen[name] = Device(name, path)
        return seen

    def _sockets(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        return [
            str(path)
            for path in sorted(self._folder.iterdir())
            if path.is_socket() and (path.name == "sock" or device_of_socket(path.name))
        ]

    def _gpus_now(self) -> set[str] | None:
        """Returns the GPUs that the driver has; None where ``nvidia-smi`` does not say."""
        if shutil.which("nvidia-smi") is None:
            return None
        if time.monotonic() >= self._next_gpu_check:
            try:
                self._gpus = {gpu.device for gpu in find_gpus()}
            except GpuError as error:
                self._gpus = None
                say(f"GPUs are not checked: {error}")
            self._next_gpu_check = time.monotonic() + _GPU_CHECK_SECONDS
        return self._gpus


def _devices_at(path: str) -> list[str]:
    """Returns the devices of the coordinator at a socket; none if it does not answer."""
    try:
        report = CoordinatorClient([path], _ANSWER_SECONDS).status()
    except GpushareError:
        return []
    return [row["device"] for row in report["devices"] if is_device_name(row["device"])]


def say(text: str) -> None:
    """Prints a line to standard error, which is the log of the container."""
    print(f"gpushare: {printable(text)}", file=sys.stderr, flush=True)
