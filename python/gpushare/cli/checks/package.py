"""Is this the right package, whole and built for this torch?"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from gpushare import config
from gpushare.cli.checks.finding import Finding
from gpushare.version import __version__

NAME = "torch-gpushare"
STRANGER = "gpushare"
"""Another project on PyPI, whose name is our import name."""


def check_package() -> list[Finding]:
    """Looks at the installed distributions and the files of this package."""
    return [check_identity(_installed_version), _check_daemon()]


def check_identity(installed_version: Callable[[str], str | None]) -> Finding:
    """Tells our package from the other project of the same import name.

    Args:
        installed_version: The version of a distribution, None if it is not installed.
    """
    if installed_version(STRANGER) is not None:
        return Finding(
            "package",
            "fail",
            f'the PyPI project "{STRANGER}" is installed, not only {NAME}, and writes to the same '
            "folder",
            f"pip uninstall {STRANGER}; pip install --force-reinstall {NAME}",
        )
    folder = Path(__file__).parent.parent.parent
    version = installed_version(NAME)
    if version is None:
        return Finding("package", "ok", f"gpushare {__version__} from {folder}, not installed")
    if version != __version__:
        return Finding(
            "package",
            "warn",
            f"{NAME} {version} is installed, but {folder} has {__version__}",
            "Is a source tree on PYTHONPATH?",
        )
    return Finding("package", "ok", f"{NAME} {version} in {folder}")


def _check_daemon() -> Finding:
    program = config.daemon_path()
    if not program or not os.access(program, os.X_OK):
        return Finding(
            "daemon",
            "fail",
            "gpushared is neither in this package nor on PATH",
            "pip install --force-reinstall --no-build-isolation torch-gpushare",
        )
    return Finding("daemon", "ok", program)


def _installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
