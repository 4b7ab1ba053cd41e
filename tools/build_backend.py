"""What pip calls to build gpushare: setuptools, and what must be there before it starts.

pip builds in an environment of its own, without the packages of the one that it installs into. But
the module has to be compiled for the torch that it will run with. So torch is looked for where pip
will install, and only if it is not there either is it a requirement of the build; the wheel then
asks for that version. CMake and ninja come from PyPI where the machine has none.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks that stay as they are

TORCH_RANGE = "torch>=2.9,<2.15"


@dataclass(frozen=True)
class InstalledTorch:
    """The torch that the module is compiled for."""

    version: str
    """As its metadata has it: 2.13.0+cpu."""
    folder: str
    """Its parent folder, which has to be on sys.path for an import."""
    is_importable: bool
    """It is in the environment of the build itself."""

    @property
    def requirement(self) -> str:
        """What a wheel asks for: the module works with the releases of one minor version."""
        return f"torch=={self.minor}.*"

    @property
    def label(self) -> str:
        """What tells wheels for different torches apart, as the local part of their version."""
        build = self.version.partition("+")[2]
        return f"torch{self.minor}.{build}" if build else f"torch{self.minor}"

    @property
    def minor(self) -> str:
        """2.13 of 2.13.0+cpu."""
        return ".".join(self.version.split(".")[:2])


def find_torch() -> InstalledTorch | None:
    """Finds torch in this environment, or else where the result will be installed.

    Found and not imported: an import would take a second or two.
    """
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.origin is not None:
        folder = str(Path(spec.origin).parent.parent)
        return InstalledTorch(importlib.metadata.version("torch"), folder, True)
    places = [sysconfig.get_path("platlib"), sysconfig.get_path("purelib")]
    for found in importlib.metadata.distributions(name="torch", path=places):
        return InstalledTorch(found.version, str(found.locate_file("")), False)
    return None


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What pip has to put into the build's environment."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_missing()]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """The same for an installation in editable form."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_missing()]


def _missing() -> list[str]:
    wanted = [] if find_torch() else [TORCH_RANGE]
    if not shutil.which("cmake"):
        wanted.append("cmake>=3.25,<4.2")
    if not shutil.which("ninja"):
        wanted.append("ninja")
    return wanted
