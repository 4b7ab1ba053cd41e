"""Where coordinators keep their journals, and which files lie there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gpushare._settings.config_files import files, read_table

SYSTEM_FOLDER = "/var/lib/gpushare-accounts"
"""Of the installed service (``admin/unit.py``)."""
_JOURNAL = re.compile(r".+@.+\.[0-9]+\.jsonl")


class Journal(NamedTuple):
    """A file of accounts, open for reading."""

    path: Path
    is_seen_in_full: bool
    """Whether this user may see all of other users' jobs there: it is the user's own, or root's."""
    content: bytes


def own_folder(env: Mapping[str, str]) -> str:
    """Returns where this user's own coordinators write; "" without a home."""
    state = env.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return f"{state}/gpushare/accounts"
    home = env.get("HOME", "")
    return f"{home}/.local/state/gpushare/accounts" if home.startswith("/") else ""


def find_folders(env: Mapping[str, str]) -> list[Path]:
    """Returns each folder in which accounts may lie, whether or not it is there.

    Args:
        env: The environment.

    Raises:
        ConfigError: A file of settings cannot be read.
    """
    folders = [SYSTEM_FOLDER, own_folder(env)]
    for path, must_exist in files(env):
        table = read_table(path, must_exist=must_exist).get("accounts")
        said = table.get("folder") if isinstance(table, dict) else None
        if isinstance(said, str) and said.startswith("/"):
            folders.append(said)
    return [Path(folder) for folder in dict.fromkeys(folders) if folder]


def read_journals(folders: list[Path], uid: int) -> tuple[list[Journal], list[str]]:
    """Reads all journals.

    Args:
        folders: Where they lie.
        uid: Of the user who reads.

    Returns:
        The journals, and what could not be read: a line for the user each.
    """
    journals = []
    notes = []
    for folder in folders:
        try:
            paths = sorted(path for path in folder.iterdir() if _JOURNAL.fullmatch(path.name))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            notes.append(f"the accounts in {folder} are left out: {error.strerror}")
            continue
        for path in paths:
            try:
                journals.append(_read(path, uid))
            except FileNotFoundError:
                continue  # the coordinator has just removed it, as its oldest
            except OSError as error:
                notes.append(f"{path} is left out: {error.strerror}")
    return journals, notes


def _read(path: Path, uid: int) -> Journal:
    # Neither a link nor a pipe is a journal, whoever has put it there.
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(number, "rb") as file:  # noqa: PTH123 - a descriptor has no path
        owner = os.fstat(number).st_uid
        return Journal(path, uid in {0, owner}, file.read())
