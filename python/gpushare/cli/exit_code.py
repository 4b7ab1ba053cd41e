"""The exit codes of every subcommand but ``run``, whose code is the program's."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a script can tell from the exit code."""

    OK = 0
    ERROR = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4
