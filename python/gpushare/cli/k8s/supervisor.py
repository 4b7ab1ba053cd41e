"""Runs a coordinator for each device of a node, for as long as the container lives.

Jobs wait 3 s for the next coordinator when theirs ends. The kubelet may wait much longer before it
starts a container again, so a coordinator that ends is started again here, at once.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gpushare._settings.devices import CPU
from gpushare.cli.exit_code import ExitCode
from gpushare.cli.k8s.devices import say
from gpushare.errors import ConfigError, GpushareError

if TYPE_CHECKING:
    from gpushare.admin.gpus import Gpu

_LOOK_SECONDS = 0.2
_SHORT_LIFE_SECONDS = 5.0
_MOST_SHORT_LIVES = 3
"""After so many short lives in a row the supervisor gives up: another start would not help."""


class Running(NamedTuple):
    """A coordinator's process, when it was started, and how many before it lived a short time."""

    process: subprocess.Popen[bytes]
    started: float
    short_lives: int


def device_arguments(devices: Sequence[str], gpus: Sequence[Gpu]) -> dict[str, list[str]]:
    """Returns the options that belong to each device.

    Args:
        devices: Those to share; if there are none, each GPU, or the CPU where there is no GPU.
        gpus: The GPUs of the node.
    """
    sizes = {gpu.device: f"{gpu.memory_mib}MiB" for gpu in gpus}
    names = devices or [gpu.device for gpu in gpus] or [CPU]
    return {
        name: ["--device", name, *(["--device-memory", sizes[name]] if name in sizes else [])]
        for name in names
    }


class Supervisor:
    """Starts coordinators, and starts again those that end."""

    def __init__(self, program: str, common: Sequence[str], devices: dict[str, list[str]]) -> None:
        """Starts nothing yet.

        Args:
            program: The path of gpushared.
            common: Options of each.
            devices: Options of each device's coordinator, by the device's name.
        """
        self._commands = {name: [program, *own, *common] for name, own in devices.items()}
        self._running: dict[str, Running] = {}

    def run(self, stop: threading.Event) -> None:
        """Keeps them running until it is told to stop.

        Args:
            stop: Says when.

        Raises:
            ConfigError: A coordinator says that an option or a setting is wrong.
            GpushareError: A coordinator ended again and again soon after its start.
        """
        try:
            for name in self._commands:
                self._start(name, 0)
            while not stop.wait(_LOOK_SECONDS):
                for name, each in list(self._running.items()):
                    code = each.process.poll()
                    if code is not None:
                        short_lives = _count_short_lives(name, each, code)
                        say(f"the coordinator of {name} has ended with {code}: starts another")
                        self._start(name, short_lives)
        finally:
            self._end()

    def _start(self, name: str, short_lives: int) -> None:
        process = subprocess.Popen(self._commands[name])
        self._running[name] = Running(process, time.monotonic(), short_lives)

    def _end(self) -> None:
        for each in self._running.values():
            each.process.terminate()
        for each in self._running.values():
            each.process.wait()


def _count_short_lives(name: str, ended: Running, code: int) -> int:
    """Returns how many coordinators in a row have lived a short time, this one included.

    Raises:
        ConfigError, GpushareError: Another start would not help.
    """
    is_short = time.monotonic() - ended.started < _SHORT_LIFE_SECONDS
    num = ended.short_lives + 1 if is_short else 0
    text = f"the coordinator of {name} ended with {code}; its lines above say why"
    if code == ExitCode.USAGE:
        raise ConfigError(text)
    if num == _MOST_SHORT_LIVES:
        raise GpushareError(text)
    return num
