"""Looks at settings before a coordinator is started with them.

The coordinator refuses most of these, too, but names its own options, which nobody has written, or
says it late. What only it can know, such as its defaults, stays with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from gpushare._settings.config import Config, look_up
from gpushare._settings.config_files import files, read_table
from gpushare._settings.devices import CPU, kind_of
from gpushare._settings.settings import OF_FILES, SETTINGS
from gpushare.cli._options.settings import option_of
from gpushare.cli.checks.machine import check_spill_folder
from gpushare.cli.units import format_bytes
from gpushare.errors import ConfigError

_BY_FIELD = {setting.field: setting for setting in (*SETTINGS, *OF_FILES)}
_LEAST_BYTES = 2 << 20
"""What a coordinator's jobs must have (``csrc/daemon/config/options.cpp``)."""


def check_start(settings: Config, device: str, options: Mapping[str, Any]) -> None:
    """Checks what would keep a coordinator from starting, or its jobs from spilling.

    Args:
        settings: With the command's options.
        device: The device's name, or "cuda" for all GPUs.
        options: The command's, by their field in ``Config``; None where the user gave none.

    Raises:
        ConfigError: The text names the setting as it was written.
    """
    said = _Said(options)
    _check_reserve(settings, device, said)
    _check_arbiter(settings, said)
    _check_host_tier(settings, said)
    _check_log_file()


class _Said:
    """Names settings as the user wrote them: an option, a variable, or a key of a file."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def name(self, field: str, of: str = "") -> str:
        """Returns the name of a setting.

        Args:
            field: The one to name.
            of: Another field, if the setting should be named in the same way as that one.
        """
        setting, other = _BY_FIELD[field], _BY_FIELD[of or field]
        if self._options.get(other.field) is not None:
            return option_of(setting)
        if not os.environ.get(other.variable) and _file_with(other.key):
            return setting.key
        return setting.variable

    def refuse(self, field: str, value: str, allowed: str) -> NoReturn:
        """Raises the error about a setting, with its value as it is understood."""
        raise ConfigError(f"{self.place(field)}: bad value {value!r}; allowed: {allowed}")

    def place(self, field: str) -> str:
        """Returns the same as ``name``, after the file if it is in one."""
        name = self.name(field)
        path = _file_with(name)
        return f"{path}: {name}" if path else name


def _file_with(key: str) -> str:
    """The file whose word counts for a key; "" if none has it."""
    found = ""
    for path, must_exist in files(os.environ):
        if look_up(read_table(path, must_exist=must_exist), key) is not None:
            found = path
    return found


def _check_reserve(settings: Config, device: str, said: _Said) -> None:
    is_cpu = kind_of(device) == CPU
    capacity = settings.capacity_bytes if is_cpu else settings.cuda_capacity_bytes
    reserve = settings.cpu_reserve_bytes if is_cpu else settings.cuda_reserve_bytes
    if capacity and reserve and capacity - reserve < _LEAST_BYTES:
        said.refuse(
            "cpu_reserve_bytes" if is_cpu else "cuda_reserve_bytes",
            format_bytes(reserve),
            f"at least 2 MiB less than the capacity, {format_bytes(capacity)}",
        )


def _check_arbiter(settings: Config, said: _Said) -> None:
    if settings.arbiter not in {"", "none"} and not settings.arbiter_token_file:
        name = said.name("arbiter_token_file", of="arbiter")
        raise ConfigError(
            f"{said.place('arbiter')}: {settings.arbiter}; say {name}, too, the file of the "
            "secret of that arbiter"
        )


def _check_host_tier(settings: Config, said: _Said) -> None:
    finding = check_spill_folder(settings)
    if finding.level == "fail":
        said.refuse("spill_dir", settings.spill_dir or "", "a folder to write to")
    in_ram = settings.host_ram_budget_bytes
    if in_ram is None:
        return
    if not settings.spill_dir:
        name = said.name("spill_dir", of="host_ram_budget_bytes")
        said.refuse(
            "host_ram_budget_bytes",
            format_bytes(in_ram),
            f"only with a folder for the rest, {name}",
        )
    budget = settings.host_budget_bytes
    if budget and in_ram > budget:
        name = said.name("host_budget_bytes")
        said.refuse(
            "host_ram_budget_bytes",
            format_bytes(in_ram),
            f"at most {name}, {format_bytes(budget)}, part of which it is",
        )


def _check_log_file() -> None:
    """Looks whether the file can be made. Its value the coordinator alone judges."""
    path = _file_with("log.file")
    file = look_up(read_table(path, must_exist=True), "log.file") if path else None
    if not file or not isinstance(file, str):
        return
    folder = Path(file).absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"{path}: log.file: {file}; there is no folder {folder}")
    is_there = Path(file).exists()
    if not os.access(file, os.W_OK) if is_there else not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{path}: log.file: {file}; permission denied")
    if is_there and not Path(file).is_file():
        raise ConfigError(f"{path}: log.file: {file}; it is no plain file")
