"""Writes the manual page of gpushare from its commands, as their help has it.

    python tools/make_man_page.py            # docs/man/gpushare.1
    python tools/make_man_page.py --check    # exit 1 if that is not what the commands say

click-man makes such pages for click, but typer has a copy of click of its own, which click-man does
not know.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from gpushare.cli.app import make_app

PATH = Path(__file__).resolve().parent.parent / "docs" / "man" / "gpushare.1"
_HEAD = r""".\" Made by tools/make_man_page.py from the commands.
.TH GPUSHARE 1 "" gpushare "User Commands"
.SH NAME
gpushare \- several PyTorch jobs share one device, iteration by iteration
.SH SYNOPSIS
.B gpushare
.RI [ OPTIONS ]
.I COMMAND
.RI [ ARGUMENTS ]
.SH OPTIONS
.TP
.B \-h, \-\-help
Says what gpushare, or the command before it, does.
"""
_TAIL = r""".SH EXIT STATUS
0: done. 1: not done. 2: wrong words or settings. 3: no coordinator answers. 4: the coordinator
refused. 130: interrupted by Ctrl\-C.
.SH ENVIRONMENT
Settings are variables that begin with GPUSHARE_.
.B gpushare doctor
names those that are probably misspelt. NO_COLOR turns colours off.
.SH SEE ALSO
.BR nvidia\-smi (1)
"""


def page() -> str:
    """Returns the page in the language of man(7)."""
    program = typer.main.get_command(make_app())
    lines = [*_parameters(program), ".SH COMMANDS"]
    for name, command in program.commands.items():
        lines += _command(f"gpushare {name}", command)
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _command(path: str, command: Any) -> Iterator[str]:
    """A section of a command; of a group, one of each of its commands."""
    inner = getattr(command, "commands", None)
    if inner:
        for name, each in inner.items():
            yield from _command(f"{path} {name}", each)
        return
    arguments = [each.name.upper() for each in command.params if _is_argument(each)]
    yield f".SS {_text(' '.join([path, '[OPTIONS]', *arguments]))}"
    yield _text(" ".join((command.help or "").split()))
    yield from _parameters(command)


def _parameters(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        names = [parameter.name.upper()]
        if not _is_argument(parameter):
            names = [*parameter.opts, *parameter.secondary_opts]
            names[-1] += "" if parameter.is_flag else f" {parameter.name.upper()}"
        yield ".TP"
        yield f".B {_text(', '.join(names))}"
        yield _text(" ".join((parameter.help or "").split())) or r"\&"


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _text(text: str) -> str:
    """Text in which no character is a command."""
    safe = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{safe}" if safe.startswith((".", "'")) else safe


def main() -> None:
    """Writes the page, or compares it."""
    made = page()
    if "--check" not in sys.argv[1:]:
        PATH.parent.mkdir(exist_ok=True)
        PATH.write_text(made)
    elif not PATH.exists() or PATH.read_text() != made:
        sys.exit(f"{PATH} is not what the commands say. Make it anew: make man")


if __name__ == "__main__":
    main()
