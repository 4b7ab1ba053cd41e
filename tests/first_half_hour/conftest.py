"""A user's machine: the programs `gpushare` and `python`, and folders of the user's own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.first_half_hour.page import Shell
from tests.support.documents import ROOT


def make_programs(folder: Path, package: Path) -> None:
    """Puts `gpushare`, `python` and `sudo` into a folder, as an installation has them.

    Args:
        folder: Is made.
        package: The folder in which Python finds gpushare.
    """
    folder.mkdir()
    for name, words in (
        ("gpushare", f'exec env PYTHONPATH={package} {sys.executable} -m gpushare "$@"'),
        ("python", f'exec env PYTHONPATH="{package}:$PYTHONPATH" {sys.executable} "$@"'),
        ("sudo", 'exec "$@"'),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{words}\n")
        (folder / name).chmod(0o755)


def user_environment(home: Path) -> dict[str, str]:
    """The environment of a user who has set nothing of gpushare."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_")}
    own: dict[str, str | Path] = {
        "HOME": home,
        "XDG_RUNTIME_DIR": home / "run",
        "XDG_CONFIG_HOME": home / "config",
    }
    # Two threads that spin for each other stand still on a busy machine.
    own |= {"XDG_STATE_HOME": home / "state", "OMP_NUM_THREADS": "1"}
    path = f"{home}/bin:{os.environ['PATH']}"
    return kept | {key: str(value) for key, value in own.items()} | {"PATH": path}


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path, since a socket's is bounded."""
    with tempfile.TemporaryDirectory(prefix="gs-", dir="/tmp") as folder:
        (Path(folder) / "run").mkdir(mode=0o700)
        make_programs(Path(folder) / "bin", ROOT / "python")
        yield Path(folder)


@pytest.fixture
def shell(home: Path) -> Iterator[Shell]:
    """A terminal of that user, in an empty folder. Afterwards no coordinator is left."""
    folder = home / "work"
    folder.mkdir()
    environment = user_environment(home)
    terminal = Shell(folder, environment)
    try:
        yield terminal
    finally:
        terminal.close()
        stop = [str(home / "bin" / "gpushare"), "coordinator", "stop", "--force"]
        subprocess.run(stop, env=environment, capture_output=True, check=False)
