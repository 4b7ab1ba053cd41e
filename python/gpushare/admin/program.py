"""Whether a service can run the daemon from where it lies."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

from gpushare.errors import GpushareError

_HIDDEN = ("/home", "/root", "/run/user")
"""What ``ProtectHome`` keeps from the service."""
_PLAIN_PATH = re.compile(r"[\w/.+,:=@~-]+")
"""A unit reads other characters (quotes, backslash, dollar, percent, spaces) in its own way."""
_NOBODY = 65534
_PATIENCE_SECONDS = 20.0


_CURE = (
    "Install gpushare in a virtual environment outside of home directories (/usr/bin/python3 -m "
    "venv /opt/gpushare), and run the gpushare of that one (docs/shared_machine.md)"
)


class ProgramError(GpushareError):
    """The service could not run the program."""


def check_program(path: str, group_id: int | None) -> list[str]:
    """Looks whether the service's user may run a program.

    Args:
        path: Of the program.
        group_id: Of the service's group; None if there is none yet.

    Returns:
        What the administrator should know: who could replace the program.

    Raises:
        ProgramError: The user may not, or it is no program, or it does not start.
    """
    if not path.startswith("/"):
        raise ProgramError(f"{path or 'gpushared'} is no absolute path: give one with --daemon")
    if _PLAIN_PATH.fullmatch(path) is None:
        raise ProgramError(
            f"{path!r}: a unit's program may only have letters, digits and any of _/.+,:=@~- in "
            f"its path. {_CURE}"
        )
    file = Path(path)
    if not file.is_file():
        raise ProgramError(f"there is no program {path}: give one with --daemon")
    real = file.resolve()
    for shown in {str(file), str(real)}:
        if shown.startswith(tuple(f"{folder}/" for folder in _HIDDEN)):
            raise ProgramError(
                f"{shown} lies in a home directory, which the service cannot see. {_CURE}"
            )
    parts = [*reversed(real.parents), real]
    for part in parts:
        if not _may_use(part, group_id):
            raise ProgramError(
                f"the service's user may not use {part}, on the way to {real}. {_CURE}"
            )
    _check_start(path, group_id)
    return [
        f"note: {part} can be changed by others than root, and the service runs what is there"
        for part in parts
        if _is_open(part)
    ]


def check_python(python: str, group_id: int | None) -> list[str]:
    """Looks whether the group's members may run a Python, and so the ``gpushare`` that it runs.

    An environment below /opt has its Python elsewhere. Python managers for one user, such as pyenv
    and uv, keep it in that user's home.

    Args:
        python: The path of the environment's interpreter.
        group_id: Of the group; None if there is none yet.

    Returns:
        What the administrator should know: a line, or nothing.
    """
    real = Path(python).resolve()
    for part in [*reversed(real.parents), real]:
        if not _may_use(part, group_id):
            return [
                f"note: other users cannot run this gpushare: its Python is {real}, and they may "
                f"not use {part}. Make the environment with a Python for all users, such as "
                "/usr/bin/python3"
            ]
    return []


def _check_start(path: str, group_id: int | None) -> None:
    """Runs ``gpushared --version``: a program whose libraries are not found does not get there.

    Root runs it as nobody, since the service is not root either, and others may own the program.
    """
    is_root = os.geteuid() == 0
    try:
        ended = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_PATIENCE_SECONDS,
            cwd="/",
            env={"PATH": os.defpath},
            user=_NOBODY if is_root else None,
            group=(_NOBODY if group_id is None else group_id) if is_root else None,
            extra_groups=[] if is_root else None,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramError(f"{path} does not start: {error}. {_CURE}") from error
    if ended.returncode != 0:
        said = (ended.stderr or ended.stdout).strip().splitlines()
        why = said[-1] if said else f"--version ended with {ended.returncode}"
        raise ProgramError(f"{path} does not start: {why}. {_CURE}")


def _may_use(part: Path, group_id: int | None) -> bool:
    """Whether one who does not own it may enter a folder, or read and run a file."""
    status = part.stat()
    wanted = 0o1 if stat.S_ISDIR(status.st_mode) else 0o5
    if status.st_gid == group_id:
        return (status.st_mode >> 3) & wanted == wanted
    return status.st_mode & wanted == wanted


def _is_open(part: Path) -> bool:
    status = part.stat()
    is_sticky = stat.S_ISDIR(status.st_mode) and bool(status.st_mode & stat.S_ISVTX)
    may_group = bool(status.st_mode & stat.S_IWGRP) and status.st_gid != 0
    may_all = bool(status.st_mode & stat.S_IWOTH) and not is_sticky
    return status.st_uid != 0 or may_group or may_all


def default_program(found: str) -> str:
    """Returns a program's path without the links on the way, or "" if there is none."""
    return os.path.realpath(found) if found else ""
