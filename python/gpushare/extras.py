"""Libraries that a command needs and that are not installed with gpushare."""

from __future__ import annotations

import importlib.util

from gpushare.errors import GpushareError


def check_installed(who: str, extra: str, *modules: str, instead: str = "") -> None:
    """Says what is missing, and how to install it.

    Args:
        who: Needs them.
        extra: Of this package; installs them.
        modules: As they are imported, which is what they are called on PyPI too.
        instead: What can be done without them: a sentence.

    Raises:
        GpushareError: One is not installed.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise GpushareError(
            f"{who} needs {' and '.join(missing)}, which is not installed: "
            f'pip install "torch-gpushare[{extra}]", or pip install {" ".join(missing)}'
            + (f". {instead}" if instead else "")
        )
