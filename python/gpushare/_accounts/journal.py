"""Lines of a journal as rows: checked, brought to the newest version, and made printable.

A journal is written by a coordinator that may be another user's, and a full disk may have cut off
a line. So a line that is not as it should be is left out and counted, and is no error.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpushare._accounts.columns import STORED, Stored
from gpushare.printable import printable

if TYPE_CHECKING:
    from gpushare._accounts.folders import Journal

VERSION = 2
"""Of a line, as ``csrc/daemon/files/account.h`` writes it."""

Row = dict[str, Any]
Values = tuple[Any, ...]


class Lines:
    """What a journal's lines came to."""

    def __init__(self, journal: Journal, uid: int) -> None:
        """Reads them.

        Args:
            journal: Where they stand.
            uid: Of the user who reads.
        """
        self.rows: list[Values] = []
        """In the order of ``STORED``; what the user may not see is null."""
        self.num_damaged = 0
        self.num_newer = 0
        for line in journal.content.split(b"\n"):
            if line:
                self._take(line, journal, uid)

    def _take(self, line: bytes, journal: Journal, uid: int) -> None:
        try:
            said = json.loads(line)
            version = said["v"]
            if version > VERSION:
                self.num_newer += 1
                return
            values = [_value(column, said) for column in STORED]
        except (ValueError, TypeError, KeyError, RecursionError):
            self.num_damaged += 1
            return
        if not journal.is_seen_in_full and said["uid"] != uid:
            hidden = zip(STORED, values, strict=True)
            values = [None if column.is_private else value for column, value in hidden]
        self.rows.append(tuple(values))

    def notes(self, journal: Journal) -> list[str]:
        """Returns what a user should know of what was left out."""
        notes = []
        if self.num_damaged:
            notes.append(f"{journal.path}: {_lines(self.num_damaged)} damaged and left out")
        if self.num_newer:
            notes.append(
                f"{journal.path}: {_lines(self.num_newer)} of a later gpushare and left out; "
                "update this one to see them"
            )
        return notes


def _lines(number: int) -> str:
    return "1 line is" if number == 1 else f"{number} lines are"


def _value(column: Stored, said: Row) -> Any:
    if column.since > said["v"]:
        return column.kind()
    value = said[column.name]
    if value is None and column.may_be_missing:
        return None
    if column.kind is str:
        if not isinstance(value, str):
            raise TypeError(column.name)
        return printable(value)
    most = 1 << (column.bits - 1)
    if not isinstance(value, int) or isinstance(value, bool) or not -most <= value < most:
        raise TypeError(column.name)
    return value
