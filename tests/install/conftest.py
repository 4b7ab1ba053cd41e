"""A wheel that is built from the sources of a release, and a fresh environment that has it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent.parent


def call(*command: str | Path, cwd: Path = ROOT, **env: str) -> str:
    """Returns what a command prints. A command that fails fails the test with all of it."""
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | env, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Installed:
    """An environment with nothing but torch, what torch needs, and the wheel."""

    folder: Path
    wheel: Path

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """The folder of the environment's packages."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.folder / "lib" / version / "site-packages"


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked sources of a release."""
    folder = tmp_path_factory.mktemp("sdist")
    call(sys.executable, "setup.py", "--quiet", "egg_info", "-e", folder, "sdist", "-d", folder)
    archive = next(folder.glob("*.tar.gz"))
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return next(path.parent for path in folder.glob("*/pyproject.toml"))


@pytest.fixture(scope="session")
def installed(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of these sources, in an environment of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    # The compiler's cache then knows the objects of this tree.
    call("tools/wheel.sh", folder, cwd=sources, VENV=sys.prefix, CCACHE_BASEDIR=str(sources))
    environment = Installed(folder / "environment", next(folder.glob("*.whl")))
    venv.create(environment.folder, with_pip=True)
    # torch is large. A folder that is named in such a file is searched, but the files of this kind
    # in it are not read, so the editable gpushare there is not found.
    torch_folder = Path(torch.__file__).parent.parent
    (environment.packages / "torch.pth").write_text(f"{torch_folder}\n")
    call(environment.python, "-m", "pip", "install", "--quiet", "--no-deps", environment.wheel)
    return environment
