"""What the screens of ``gpushare status`` are made of: aligned rows, names safe to print."""

from __future__ import annotations

import pwd

GAP = "  "
_MOST_NAME = 24


def align(rows: list[tuple[str, ...]]) -> list[str]:
    """Returns a line for each row, with columns of one width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def user_name(uid: int) -> str:
    """Returns the user's name, or the number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def shorten(name: str) -> str:
    """Returns the name as it may be printed, cut with a "~" where it is long."""
    text = printable(name)
    return text if len(text) <= _MOST_NAME else text[: _MOST_NAME - 1] + "~"


def printable(text: str) -> str:
    """Returns the text with "?" for what is no printable character."""
    # Names come from other users' processes: nothing in them may steer the terminal.
    return "".join(character if character.isprintable() else "?" for character in text)
