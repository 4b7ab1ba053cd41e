"""What gpushare raises. Out of memory is not here: it is torch's own ``torch.OutOfMemoryError``."""

from __future__ import annotations

import sys

_said: set[str] = set()


class GpushareError(Exception):
    """Base of all errors of gpushare."""


class CoordinatorUnreachable(GpushareError):  # noqa: N818 - the name says what is the matter
    """No coordinator answers and none could be started; the text says what was tried."""


class LeaseRefused(GpushareError):  # noqa: N818
    """The coordinator gives this job no lease; the text says why."""


class ProtocolError(GpushareError):
    """A peer sent what no message of the protocol allows."""


class ConfigError(GpushareError, ValueError):
    """A setting has a bad value; the text names the place, the value and what is allowed."""


def say_once(text: str) -> None:
    """Writes one line to stderr, the first time this text is said in the process.

    A plain line and no ``warnings.warn``: it must reach the user of a program that turns warnings
    off, and not end a program that turns them into errors.

    Args:
        text: The line, without "gpushare: " in front.
    """
    if text in _said:
        return
    _said.add(text)
    sys.stderr.write(f"gpushare: {text}\n")
    sys.stderr.flush()
