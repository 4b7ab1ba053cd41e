"""The TOML files with settings: which there are, and what they say.

``/etc/gpushare/config.toml``, then ``$XDG_CONFIG_HOME/gpushare/config.toml`` (``~/.config``); or
only the one that GPUSHARE_CONFIG names. The coordinator reads the same files. A number without
quotes counts seconds, or bytes; a time in quotes has a unit.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from gpushare.errors import ConfigError

SYSTEM_FILE = "/etc/gpushare/config.toml"
MOST_BYTES = 1 << 20
"""A longer file is no file of settings: GPUSHARE_CONFIG may name a log by mistake."""


def files(env: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    """Yields the paths of the files that hold settings, and whether each must exist."""
    if env.get("GPUSHARE_CONFIG"):
        yield env["GPUSHARE_CONFIG"], True
        return
    yield SYSTEM_FILE, False
    folder = env.get("XDG_CONFIG_HOME") or (f"{env['HOME']}/.config" if env.get("HOME") else "")
    if folder:
        yield f"{folder}/gpushare/config.toml", False


def read_table(path: str, *, must_exist: bool) -> dict[str, Any]:
    """Returns what a file says; nothing, if it is not there and need not be.

    Raises:
        ConfigError: It cannot be read, or is no TOML.
    """
    try:
        _check_is_file(path)
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
            content = file.read(MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        if not must_exist:
            return {}
        raise ConfigError(f"GPUSHARE_CONFIG: cannot read {path}: {error.strerror}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    if len(content) > MOST_BYTES:
        raise ConfigError(f"{path} has more than 1 MiB, so it is no file of settings")
    return _parse_toml(content, path)


def _check_is_file(path: str) -> None:
    """Refuses a pipe, whose opening would wait for its writer, and a device, which may not end."""
    kind = os.stat(path)  # noqa: PTH116 - pathlib costs start-up time
    if stat.S_ISREG(kind.st_mode) or stat.S_ISDIR(kind.st_mode):
        return
    if stat.S_ISCHR(kind.st_mode) and kind.st_rdev == os.stat(os.devnull).st_rdev:  # noqa: PTH116
        return
    raise ConfigError(
        f"{path} is a pipe or a device, and no file of settings: name a plain file, or /dev/null "
        "for no settings"
    )


def _parse_toml(content: bytes, path: str) -> dict[str, Any]:
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: it is no text in UTF-8, so it is no file of settings") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: it is nested too deeply") from None
