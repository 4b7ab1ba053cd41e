"""A small file system, for tests of what happens when a disk is full."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[str]:
    """Makes the folder, and mounts an empty file system of this size there until the block ends.

    Yields:
        Why this user may not mount one, as `mount` says it; "" where it is mounted.
    """
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        yield done.stderr.strip() or f"mount ended with {done.returncode}"
        return
    try:
        yield ""
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
