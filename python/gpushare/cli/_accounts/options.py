"""Options of the commands about accounts: what they may be, and what they mean."""

from __future__ import annotations

import os
import pwd
import re
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import Enum
from typing import Annotated

import typer

from gpushare._accounts.accounts import Accounts, Filter
from gpushare._settings.quantities import is_number
from gpushare.printable import printable

_SPAN = re.compile(r"([0-9]{1,6})(min|h|d|w)")
_SPAN_SECONDS = {"min": 60, "h": 3600, "d": 86400, "w": 604800}


class Format(str, Enum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


SinceOption = Annotated[
    str, typer.Option(help="Jobs that ended since: a span like 12h, 7d or 2w, a day, or all.")
]
FormatOption = Annotated[
    Format, typer.Option("--format", help="A table to read, or csv or json with all columns.")
]
ArchiveOption = Annotated[
    str,
    typer.Option(help="A SQLite file that accounts are added to and read from."),
]


@contextmanager
def open_accounts(archive: str) -> Iterator[Accounts]:
    """Reads the accounts, says on stderr what was left out, and closes the accounts at the end.

    Raises:
        ConfigError: A file of settings cannot be read.
        ArchiveError: The archive cannot be used.
    """
    with closing(Accounts(archive)) as accounts:
        for note in accounts.notes:
            print(f"gpushare: {printable(note)}", file=sys.stderr)
        yield accounts


def parse_since(text: str) -> float:
    """Returns the time that ``--since`` means, in seconds since 1970.

    Raises:
        typer.BadParameter: It means none.
    """
    if text == "all":
        return 0.0
    span = _SPAN.fullmatch(text)
    if span:
        return time.time() - int(span[1]) * _SPAN_SECONDS[span[2]]
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d"))
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"--since {text!r}: allowed: a span like 30min, 12h, 7d or 2w, a day like 2026-11-20, "
            "or all"
        ) from None


def make_filter(*, since: str, me: bool, user: str, group: str | None, most: int = 0) -> Filter:
    """Returns what the options together mean.

    Raises:
        typer.BadParameter: One of them means nothing, or two contradict each other.
    """
    if me and user:
        raise typer.BadParameter("--me and --user are about one user each: give one of them")
    uid = os.geteuid() if me else _uid_of(user) if user else None
    return Filter(since_unix_seconds=parse_since(since), uid=uid, group=group, most=most)


def _uid_of(user: str) -> int:
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        if is_number(user):
            return int(user)
        raise typer.BadParameter(
            f"--user {user!r}: this machine has no such user; a number is allowed too"
        ) from None
