"""Tells our distribution from the other project on PyPI that has our import name."""

from __future__ import annotations

DISTRIBUTION = "torch-gpushare"
STRANGER = "gpushare"
"""Another project on PyPI, which writes to the same folder."""
REINSTALL = "pip install --force-reinstall --no-deps ./"
"""Builds it again for the torch that is here; to be called where its sources are."""
WRONG_PACKAGE = (
    f'this is the PyPI project "{STRANGER}", not {DISTRIBUTION}: pip uninstall {STRANGER}; '
    f"then in {DISTRIBUTION}'s sources {REINSTALL}"
)


def installed_version(name: str) -> str | None:
    """Returns the version of a distribution in this environment, None if it is not there."""
    from importlib import metadata  # costs start-up time

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def is_stranger_installed() -> bool:
    """Tells whether the other project may have overwritten our files."""
    return installed_version(STRANGER) is not None
