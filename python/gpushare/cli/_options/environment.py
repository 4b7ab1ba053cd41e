"""The environment that turns an unmodified program into a job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from gpushare.cli._options.settings import to_environment


def make_environment(
    options: Mapping[str, str | float | bool | None], base: Mapping[str, str]
) -> dict[str, str]:
    """Builds the environment of a program that ``gpushare run`` starts.

    Args:
        options: The user's options by their field in ``Config``; None leaves the environment's or
            the configuration's value.
        base: The environment to add to.

    Returns:
        A copy of ``base`` with the settings and the folder that starts gpushare.

    Raises:
        ValueError: An option has a value that no job can have.
    """
    environment = {**base, **to_environment(options), "GPUSHARE_RUN": "1"}
    add_inject_folder(environment)
    return environment


def inject_folder() -> str:
    """Returns the folder with the ``sitecustomize`` that starts gpushare."""
    return str(Path(__file__).resolve().parents[2] / "_inject")


def add_inject_folder(environment: dict[str, str]) -> None:
    """Puts the folder with gpushare's ``sitecustomize`` first on PYTHONPATH, once."""
    folder = inject_folder()
    present = environment.get("PYTHONPATH")
    # An empty entry means the current folder, so it is kept.
    others = [entry for entry in present.split(os.pathsep) if entry != folder] if present else []
    environment["PYTHONPATH"] = os.pathsep.join([folder, *others])
