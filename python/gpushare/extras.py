"""Libraries that a command needs and that are not installed with gpushare."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from gpushare.errors import GpushareError


def check_installed(
    who: str,
    extra: str,
    *modules: str,
    instead: str = "",
    packages: Mapping[str, str] | None = None,
) -> None:
    """Says what is missing, and how to install it.

    Args:
        who: Needs them.
        extra: Of this package; installs them.
        modules: As they are imported, which is what they are called on PyPI too.
        instead: What can be done without them: a sentence.
        packages: What modules are called on PyPI that have another name there.

    Raises:
        GpushareError: One is not installed.
    """
    names = packages or {}
    missing = [names.get(module, module) for module in modules if not _is_there(module)]
    if missing:
        raise GpushareError(
            f"{who} needs {' and '.join(missing)}, which is not installed: "
            f'pip install "torch-gpushare[{extra}]", or pip install {" ".join(missing)}'
            + (f". {instead}" if instead else "")
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that it would be in is not there either
        return False
