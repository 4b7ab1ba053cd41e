"""Strange files lie where a coordinator keeps its own.

The coordinator starts all the same, or ends with one line that names the file.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpushare._coordinator.client import CoordinatorClient
from gpushare.errors import CoordinatorUnreachable
from tests.hostile.shared_box import DAEMON, PATIENCE_SECONDS

Make = Callable[[Path], object]

STRANGE_FILES: dict[str, Make] = {
    "empty": lambda path: path.write_bytes(b""),
    "zeros": lambda path: path.write_bytes(bytes(4096)),
    "no lines": lambda path: path.write_bytes(b"x" * (1 << 20)),
    "many lines": lambda path: path.write_bytes(b"job 1 2\n" * 100_000),
    "no numbers": lambda path: path.write_bytes(b"gpushare 1\nepoch x\njob y z\n"),
    "link": lambda path: path.symlink_to("/etc/passwd"),
    "link to itself": lambda path: path.symlink_to(path),
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
}


@pytest.mark.parametrize("suffix", ["jobs", "profiles", "lock", "log", "new"])
@pytest.mark.parametrize("name", STRANGE_FILES)
def test_a_coordinator_starts_or_names_the_file(suffix: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / f"s.{suffix}"
    STRANGE_FILES[name](path)
    words = ["--socket", str(tmp_path / "s"), "--capacity", "64MiB", "--linger-s", "0"]
    if suffix == "log":
        words += ["--log-file", str(path)]
    process = subprocess.Popen([str(DAEMON), *words], stderr=subprocess.PIPE, text=True)
    is_serving = _wait_for_answer(tmp_path / "s", process)
    process.terminate()
    errors = process.communicate()[1]
    if not is_serving:
        assert process.returncode == 1, errors
        assert str(path) in errors.splitlines()[-1]


def _wait_for_answer(path: Path, process: subprocess.Popen[str]) -> bool:
    """Whether the coordinator answers; false: its process has ended."""
    end = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None:
        try:
            CoordinatorClient([str(path)]).status()
        except CoordinatorUnreachable:
            assert time.monotonic() < end, "it neither answers nor ends"
            time.sleep(0.005)
        else:
            return True
    return False
