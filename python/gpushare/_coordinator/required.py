"""GPUSHARE_REQUIRE=1: a job that cannot be managed ends with one line and exit code 3.

The error is raised as any other, so a program may catch it. Only where nobody does is there a line
instead of a traceback: nothing is wrong in the program.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpushare.cli.exit_code import ExitCode

if TYPE_CHECKING:
    from gpushare.errors import GpushareError


def exit_if_uncaught(error: GpushareError) -> None:
    """Has this error, which is about to be raised, end the process with ``UNREACHABLE``.

    Args:
        error: Why this process would go on unmanaged.
    """
    report = sys.excepthook

    def say_and_exit(*uncaught: object) -> None:
        # torch makes an error of its own of what is raised while it initialises CUDA.
        if error not in (uncaught[1], getattr(uncaught[1], "__cause__", None)):
            report(*uncaught)  # type: ignore[arg-type]
            return
        text = str(error).removeprefix("gpushare: ")
        sys.stderr.write(f"gpushare: {text}. GPUSHARE_REQUIRE=1 makes this fatal\n")
        # What a hook raises is handled as if the program had raised it.
        raise SystemExit(int(ExitCode.UNREACHABLE))

    sys.excepthook = say_and_exit
