"""A folder for spilled memory, on a small file system of its own where this user may mount one."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

_BYTES = 192 << 20
"""More than all jobs ever spill."""


class SmallDisk:
    """The folder; it can be filled up if it `is_mounted`."""

    def __init__(self, folder: Path) -> None:
        """Makes it."""
        folder.mkdir()
        self.folder = folder
        self._filler = folder / "filler"
        mount = ["mount", "-t", "tmpfs", "-o", f"size={_BYTES}", "tmpfs", str(folder)]
        self.is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0

    @property
    def is_full(self) -> bool:
        """Between `fill` and `empty`."""
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
        """Gives it back."""
        self._filler.unlink()

    def close(self) -> None:
        """Unmounts it."""
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
            self.is_mounted = False
