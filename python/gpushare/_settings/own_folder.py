"""Files of this user alone, in a folder of this user.

Where a user has no runtime folder, the folder lies in /tmp, and anybody can make it first.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def check_own_folder(path: str) -> None:
    """Makes a folder that only this user may enter, if it is not there.

    Args:
        path: Its path; the folder above is there.

    Raises:
        PermissionError: It is there, and is another user's, or others may write to it.
    """
    with suppress(FileExistsError):
        Path(path).mkdir(mode=0o700)
    status = Path(path).lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    if not is_own or status.st_mode & 0o022:
        raise PermissionError(
            f"{path} must be a folder of user {os.geteuid()}, and nobody else's to write to"
        )


def write_own_file(path: str, text: str) -> None:
    """Writes a file that only this user may read, in one step.

    Args:
        path: Where, in a folder that ``check_own_folder`` has checked.
        text: The whole file.
    """
    import tempfile  # which takes long to import, and workers only read

    number, made = tempfile.mkstemp(dir=Path(path).parent, prefix=f".{Path(path).name}.")
    try:
        with open(number, "w") as file:  # noqa: PTH123 - it is open already
            file.write(text)
        Path(made).replace(path)
    except OSError:
        Path(made).unlink()
        raise


def read_own_file(path: str) -> str:
    """Returns the text of a file of this user; "" if there is none, or if it is somebody else's."""
    try:
        with Path(path).open() as file:
            is_own = os.fstat(file.fileno()).st_uid == os.geteuid()
            return file.read() if is_own else ""
    except OSError:
        return ""
