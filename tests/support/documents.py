"""The documents of the tree, and the code blocks in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SHELL = ("", "sh")
"""Languages of blocks that may hold commands; an indented block has none."""
_FENCE = re.compile(r"^( *)```(.*)$")
_OPERATORS = re.compile(r"[|&;()<>]+")
_BEFORE_COMMANDS = {"sudo", "do", "then", "exec", "time", "echo"}


class Block(NamedTuple):
    """A code block."""

    language: str
    """What stands behind the fence; "" for an indented block."""
    text: str
    """With the indentation of its lines, if it is fenced."""


def documents(root: Path = ROOT) -> list[Path]:
    """Returns all documents that users and developers read, in a fixed order."""
    return sorted(
        [
            *root.glob("*.md"),
            *(root / "docs").rglob("*.md"),
            root / "examples" / "README.md",
        ]
    )


def blocks(text: str) -> Iterator[Block]:
    """Yields the code blocks of a document, in their order."""
    language: str | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        fence = _FENCE.match(line)
        if fence is not None and language is None:
            language = fence[2].strip()
        elif fence is not None:
            yield Block(language or "", "\n".join(lines) + "\n")
            language, lines = None, []
        elif language is not None:
            lines.append(line)
        elif line.startswith("    ") and line.strip():
            yield Block("", f"{line.strip()}\n")


def command_lines(text: str) -> Iterator[str]:
    """Yields the lines of a document's blocks that a shell could read, continuations joined."""
    for block in blocks(text):
        if block.language in SHELL:
            yield from block.text.replace("\\\n", " ").splitlines()


def inline_commands(text: str) -> Iterator[str]:
    """Yields commands that stand in sentences and tables: code that is more than one word."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from (code for code in re.findall(r"`([^`\n]+)`", prose) if " " in code)


def calls(line: str, *programs: str) -> Iterator[list[str]]:
    """Yields the words of each call of one of these programs in a shell's line.

    The program may stand behind ``sudo`` and settings of the environment, and with its folder.
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a drawing, or a sentence with an apostrophe
        return
    call: list[str] = []
    for word in [*words, ";"]:
        if not _OPERATORS.fullmatch(word):
            call.append(word)
            continue
        while call and (call[0] in _BEFORE_COMMANDS or re.match(r"\w+=", call[0])):
            call = call[1:]
        if call and call[0].rpartition("/")[2] in programs:
            yield [call[0].rpartition("/")[2], *call[1:]]
        call = []
