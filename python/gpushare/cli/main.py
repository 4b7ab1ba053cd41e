"""The entry point of the command ``gpushare``.

Importing typer takes longer than asking a coordinator for its status, so the plain forms of
``gpushare status`` go around it, and of the other subcommands only the module of the one that was
asked for is imported. None waits for torch.
"""

from __future__ import annotations

import os
import sys

from gpushare.cli._screen.terminal import take_no_color
from gpushare.cli.exit_code import INTERRUPTED, ExitCode
from gpushare.errors import ConfigError, CoordinatorUnreachable, GpushareError
from gpushare.printable import printable


def main() -> None:
    """Runs the subcommand that ``sys.argv`` names, and exits with one of ``ExitCode``."""
    arguments = take_no_color(sys.argv[1:])
    if sys.stdout is None:  # closed by whoever started this
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - pathlib costs start-up time
    try:
        code = 0
        if arguments[:1] != ["status"] or not _show_status(arguments[1:]):
            from gpushare.cli.app import run_app

            code = run_app(arguments)
        sys.stdout.flush()  # what cannot be written is said here, and not by Python at exit
        sys.exit(code)
    except GpushareError as error:
        # The text may have words of an argument, a variable or a file.
        print(f"gpushare: {printable(str(error))}", file=sys.stderr)
        sys.exit(_exit_code(error))
    except ImportError:
        from gpushare._coordinator.identity import WRONG_PACKAGE, is_stranger_installed

        if not is_stranger_installed():
            raise
        print(f"gpushare: {WRONG_PACKAGE}", file=sys.stderr)
        sys.exit(ExitCode.ERROR)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        _forget_output()  # the reader (`| head`) has enough
        sys.exit(ExitCode.ERROR)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"gpushare: {printable(f'{where}{error.strerror or error}')}", file=sys.stderr)
        _forget_output()
        sys.exit(ExitCode.ERROR)


def _forget_output() -> None:
    """Keeps Python from failing once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _show_status(arguments: list[str]) -> bool:
    """Shows the status, unless the arguments need typer: help, or what is wrong."""
    from gpushare.cli._status.options import parse_plain
    from gpushare.cli._status.show import show_status

    options = parse_plain(arguments)
    if options is None:
        return False
    show_status(options)
    return True


def _exit_code(error: GpushareError) -> ExitCode:
    if isinstance(error, ConfigError):
        return ExitCode.USAGE
    if isinstance(error, CoordinatorUnreachable):
        return ExitCode.UNREACHABLE
    client = sys.modules.get("gpushare._coordinator.client")
    if client is not None and isinstance(error, client.RefusedError):
        return ExitCode.REFUSED
    return ExitCode.ERROR


if __name__ == "__main__":
    main()
