"""Text of others, safe to print; the coordinator does the same (``csrc/base/printable.h``)."""

from __future__ import annotations


def printable(text: str) -> str:
    """Returns the text with "?" for what is no printable character.

    Names come from other users' processes and files: nothing in them may steer the terminal.
    """
    if text.isprintable():  # nearly always
        return text
    return "".join(character if character.isprintable() else "?" for character in text)
