"""Is this the right package, whole and built for this torch?"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gpushare._coordinator.identity import DISTRIBUTION, REINSTALL, STRANGER, installed_version
from gpushare._settings import config
from gpushare.cli.checks.finding import Finding
from gpushare.version import __version__


def check_package() -> list[Finding]:
    """Looks at the installed distributions and the files of this package."""
    return [check_identity(installed_version), _check_daemon()]


def check_identity(version_of: Callable[[str], str | None]) -> Finding:
    """Tells our package from the other project of the same import name.

    Args:
        version_of: The version of a distribution, None if it is not installed.
    """
    if version_of(STRANGER) is not None:
        return Finding(
            "package",
            "fail",
            f'the PyPI project "{STRANGER}" is installed, not only {DISTRIBUTION}, and writes to '
            "the same folder",
            f"pip uninstall {STRANGER}; then in {DISTRIBUTION}'s sources {REINSTALL}",
        )
    folder = Path(__file__).parent.parent.parent
    version = version_of(DISTRIBUTION)
    if version is None:
        return Finding("package", "ok", f"gpushare {__version__} from {folder}, not installed")
    # What was built names its torch behind a plus.
    if version.partition("+")[0] != __version__:
        return Finding(
            "package",
            "warn",
            f"{DISTRIBUTION} {version} is installed, but {folder} has {__version__}",
            "Is a source tree on PYTHONPATH?",
        )
    return Finding("package", "ok", f"{DISTRIBUTION} {version} in {folder}")


def _check_daemon() -> Finding:
    program = config.daemon_path()
    if not program or not os.access(program, os.X_OK):
        return Finding(
            "daemon",
            "fail",
            "gpushared is neither in this package nor on PATH",
            f"in gpushare's sources {REINSTALL}",
        )
    return Finding("daemon", "ok", program)
