"""What the settings say that nothing reads: a line each.

The coordinator also warns in its log, of each unknown table and of the unknown keys in its own
tables (``csrc/daemon/config/config_file.cpp``). It measures likeness in another way, so it may
suggest another key, and it suggests no tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpushare._settings.config_files import files, read_table
from gpushare._settings.settings import SETTINGS
from gpushare.printable import printable

COORDINATORS_KEYS = frozenset({
    "coordinator.socket_mode", "coordinator.socket_group", "coordinator.class_floor",
    "coordinator.gap_poll", "device.cpu.reserve", "log.file",
    "coordinator.devices", "accounts.folder", "accounts.budget",
})  # fmt: skip
"""What the coordinator alone reads (``csrc/daemon/config/settings.cpp``)."""

COORDINATORS_VARIABLES = {"GPUSHARE_DEVICES": "coordinator.devices"}
"""Variables that it reads by itself, with their keys."""

USER_KEYS = frozenset({
    "weight", "share_limit", "memory_limit", "max_priority", "max_weight", "max_jobs", "elastic",
})  # fmt: skip
"""What it reads in a table ``[user.NAME]`` (``csrc/daemon/config/user_settings.cpp``)."""

_OTHERS_KEYS = frozenset({"host.per_user", "host.pinned"})
"""Keys that other programs or later versions read."""

_KEYS = frozenset({setting.key for setting in SETTINGS}) | COORDINATORS_KEYS
_TABLES = frozenset({key.rpartition(".")[0] for key in _KEYS} | {"device", "user"})
_VARIABLES = frozenset(setting.variable for setting in SETTINGS) | set(COORDINATORS_VARIABLES)
_PREFIX = "GPUSHARE_"
_LIKENESS = 0.6
_VARIABLES_LIKENESS = 0.8
"""Higher, since programs may have variables of their own with our prefix."""


def config_notes(env: Mapping[str, str]) -> list[str]:
    """Returns a line for each unknown key of the files and unknown variable.

    Args:
        env: The environment, which may name the file.

    Raises:
        ConfigError: A file cannot be read.
    """
    notes = []
    for path, table in _tables(env):
        notes += [f"{path}: {text}" for text in _unknown_in(table, "")]
    return notes + list(_variable_notes(env))


def user_notes(env: Mapping[str, str]) -> list[str]:
    """Returns a line for each table ``[user.NAME]`` whose user this machine does not know.

    Args:
        env: The environment, which may name the file.

    Raises:
        ConfigError: A file cannot be read.
    """
    import pwd

    notes = []
    for path, table in _tables(env):
        users = table.get("user", {})
        for name in users if isinstance(users, dict) else ():
            if name == "default" or name.isdecimal():
                continue
            try:
                pwd.getpwnam(name)
            except (KeyError, ValueError):
                title = f"[user.{printable(name)}]"
                notes.append(f"{path}: {title}: no user of this machine has that name")
    return notes


def _tables(env: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields each file of settings with what it says."""
    for path, must_exist in files(env):
        yield path, read_table(path, must_exist=must_exist)


def _unknown_in(table: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yields what is unknown in the table of this name."""
    for key, value in table.items():
        full = printable(f"{name}.{key}" if name else key)
        if name == "user":
            if isinstance(value, dict):
                yield from _unknown_users_keys(value, full)
            else:
                yield f"unknown key {full}; a table [user.NAME] holds what a user may have"
        elif not isinstance(value, dict):
            if full in _TABLES:
                yield f"{full} is a table and no value: write [{full}]"
            elif full not in _KEYS | _OTHERS_KEYS:
                yield f"unknown key {full}{_suggest(_nearest_key(full))}"
        elif full in _TABLES:
            yield from _unknown_in(value, full)
        else:
            nearest = _nearest(full, _TABLES)
            yield f"unknown table [{full}]{_suggest(f'[{nearest}]' if nearest else '')}"


def _unknown_users_keys(table: Mapping[str, Any], name: str) -> Iterator[str]:
    for key in table:
        if key not in USER_KEYS:
            full = printable(f"{name}.{key}")
            yield f"unknown key {full}{_suggest(_nearest(key, USER_KEYS), f'{name}.')}"


def _nearest_key(full: str) -> str:
    """The key that is spelled most alike: of the same name, then in the same table, then any."""
    table, _, name = full.rpartition(".")
    anywhere = {key.rpartition(".")[2]: key for key in sorted(_KEYS, reverse=True)}
    here = {each: key for each, key in anywhere.items() if key == f"{table}.{each}"}
    if name in anywhere:
        return anywhere[name]
    return here.get(_nearest(name, here)) or anywhere.get(_nearest(name, anywhere), "")


def _nearest(word: str, known: Iterable[str], likeness: float = _LIKENESS) -> str:
    import difflib  # costs start-up time

    found = difflib.get_close_matches(word, sorted(known), 1, likeness)
    return found[0] if found else ""


def _suggest(nearest: str, before: str = "") -> str:
    return f"; did you mean {before}{nearest}?" if nearest else ""


def _variable_notes(env: Mapping[str, str]) -> Iterator[str]:
    short = {variable.removeprefix(_PREFIX) for variable in _VARIABLES}
    for variable in sorted(env):
        if variable.startswith(_PREFIX) and variable not in _VARIABLES:
            nearest = _nearest(variable.removeprefix(_PREFIX), short, _VARIABLES_LIKENESS)
            if nearest:
                yield f"nothing reads {variable}; did you mean {_PREFIX}{nearest}?"
