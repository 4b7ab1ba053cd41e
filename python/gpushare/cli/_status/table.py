"""What all screens are made of: aligned rows, and names that are safe to print and short.

Widths are counted in places of the terminal (rich calls them cells), never in characters.
"""

from __future__ import annotations

from typing import Any

from gpushare.cli.units import format_bytes
from gpushare.printable import printable

GAP = "  "
_MOST_NAME = 24


def align(rows: list[tuple[str, ...]]) -> list[str]:
    """Returns a line for each row, with columns of one width."""
    widths = column_widths(rows)
    return [
        GAP.join(pad(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def column_widths(rows: list[tuple[str, ...]]) -> list[int]:
    """Returns how many places of the terminal each column takes."""
    return [max(map(places, column)) for column in zip(*rows, strict=True)]


def places(text: str) -> int:
    """Returns how many places of the terminal a printable text takes.

    An East Asian wide character and most emoji take two, and a mark on the character before it
    none.
    """
    if text.isascii():  # nearly always; rich is slow to import
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def take(text: str, most: int) -> str:
    """Returns the beginning of a printable text that takes at most so many places."""
    if text.isascii():
        return text[: max(most, 0)]
    end = 0
    while end < len(text) and places(text[: end + 1]) <= most:
        end += 1
    return text[:end]


def take_end(text: str, most: int) -> str:
    """Returns the end of a printable text that takes at most so many places."""
    if text.isascii():
        return text[len(text) - min(max(most, 0), len(text)) :]
    begin = len(text)
    while begin > 0 and places(text[begin - 1 :]) <= most:
        begin -= 1
    while begin < len(text) and places(text[begin]) == 0:  # a mark on what is not taken
        begin += 1
    return text[begin:]


def pad(cell: str, width: int) -> str:
    """Returns the cell with spaces up to that many places."""
    return cell + " " * (width - places(cell))


def host_text(device: dict[str, Any]) -> str:
    """Returns what is used of the host tier, each part apart where it has two."""
    used, budget = device["host_used_bytes"], device["host_budget_bytes"]
    # A coordinator of an earlier version does not say.
    file_used, file_budget = (device.get(f"host_file_{key}_bytes", 0) for key in ("used", "budget"))
    parts = [("host", used, budget)]
    if 0 < file_budget < budget:
        parts = [
            ("host ram", used - file_used, budget - file_budget),
            ("file", file_used, file_budget),
        ]
    return " ".join(
        f"{name} {format_bytes(part)}/{format_bytes(whole)}" for name, part, whole in parts
    )


def shorten(name: str, most: int = _MOST_NAME) -> str:
    """Returns the name as it may be printed; of a longer one a "~" stands for the middle.

    The names of a sweep differ at their ends.

    Args:
        name: May come from another process.
        most: In places of the terminal; at least 1.
    """
    text = printable(name)
    if places(text) <= most:
        return text
    end = take_end(text, (most - 1) // 2)
    return take(text, most - 1 - places(end)) + "~" + end
