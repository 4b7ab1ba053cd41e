"""A folder for spilled memory, on a small file system of its own where this user may mount one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tests.support.small_disk import small_disk

_BYTES = 192 << 20
"""The size of that file system: more than all jobs ever spill."""


class SmallDisk:
    """The folder. It can be filled up where it is a file system of its own."""

    def __init__(self, folder: Path) -> None:
        """Makes it."""
        self.folder = folder
        self._filler = folder / "filler"
        self._mount = contextlib.ExitStack()
        self.refusal = self._mount.enter_context(small_disk(folder, _BYTES))
        """Why the folder is no file system of its own; "" if it is."""

    @property
    def is_full(self) -> bool:
        """Whether `fill` has been called, and `empty` not since."""
        return self._filler.exists()

    def fill(self) -> None:
        """Leaves no byte free."""
        with self._filler.open("ab") as filler:
            for step in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while True:
                        size = os.fstat(filler.fileno()).st_size
                        os.posix_fallocate(filler.fileno(), size, step)

    def empty(self) -> None:
        """Removes what `fill` has written."""
        self._filler.unlink()

    def close(self) -> None:
        """Unmounts it."""
        self._mount.close()
