"""The exit codes of all subcommands; ``run`` ends with its program's. See docs/exit_codes.md."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a script can tell from the exit code."""

    OK = 0
    ERROR = 1
    """Anything that the other codes do not say."""
    USAGE = 2
    """An option, argument or setting is wrong; nothing was done."""
    UNREACHABLE = 3
    """No coordinator answers where one is needed."""
    REFUSED = 4
    """The coordinator does not do it: it knows no such job, or the user may not."""


COMMAND_NOT_FOUND = 127
"""The program of ``run`` or ``verify`` is not there; as a shell has it."""
INTERRUPTED = 130
"""Ctrl-C; as a shell has it."""
