"""Messages that the documents quote are ones that the programs say.

A quoted message stands in a block of the language "text", with "..." for what differs from case to
case. What lies between has to stand in one file of the source, in literals of Python or C++.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.documents import ROOT, blocks

GUIDE = ROOT / "docs" / "guide"
QUOTING = ("troubleshooting.md", "out_of_memory.md", "quick_start.md")
"""Documents whose blocks of text are messages."""
WITH_TABLES = ("out_of_memory.md", "why_a_job_waits.md")
"""Documents with a table whose first column quotes parts of messages."""
HOLE = "\0"
"""In a literal: where a value is put."""
LEAST = 10
"""With fewer characters a message, or one of two parts of a piece, is told from no other."""
_CPP_LITERAL = r'"(?:[^"\\\n]|\\.)*"'
_CPP_LITERALS = re.compile(rf"{_CPP_LITERAL}(?:\s*{_CPP_LITERAL})*")
_CPP_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def _python_literals(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _cpp_literals(source: str) -> Iterator[str]:
    for found in _CPP_LITERALS.findall(_CPP_COMMENT.sub("", source)):
        text = "".join(part[1:-1] for part in re.findall(_CPP_LITERAL, found))
        yield re.sub(r"\{[^{}]*\}", HOLE, text.replace('\\"', '"'))


@cache
def literals() -> dict[Path, str]:
    """The literals of each source file, in one text."""
    found = {}
    for path in (ROOT / "python/gpushare").rglob("*.py"):
        found[path] = "\n".join(_python_literals(path.read_text()))
    for path in (ROOT / "csrc").rglob("*"):
        if path.suffix in {".cpp", ".h"}:
            found[path] = "\n".join(_cpp_literals(path.read_text()))
    return found


def is_said(message: str) -> bool:
    """Tells whether one file of the source has all pieces of this message."""
    pieces = [piece.strip() for piece in message.split("...") if piece.strip(" .;:,()/u")]
    assert len("".join(pieces)) >= LEAST, f"too little to tell: {message}"
    return any(all(_has(text, piece) for piece in pieces) for text in literals().values())


def _has(text: str, piece: str) -> bool:
    """Whether the piece is there, or is put together of two literals that are."""
    if piece in text:
        return True
    return any(
        piece[:middle].strip() in text and piece[middle:].strip() in text
        for middle in range(LEAST, len(piece) - LEAST + 1)
    )


def _quoted() -> list[str]:
    return [
        line
        for name in QUOTING
        for block in blocks((GUIDE / name).read_text())
        if block.language == "text"
        for line in block.text.splitlines()
    ]


def _cells() -> list[str]:
    return [
        quote
        for name in WITH_TABLES
        for line in (GUIDE / name).read_text().splitlines()
        if line.startswith("| `")
        for quote in re.findall(r"`([^`]+)`", line.split("|")[1])
        if len(quote) >= LEAST
    ]


@pytest.mark.parametrize("message", _quoted() + _cells())
def test_a_quoted_message_is_in_the_source(message: str) -> None:
    assert is_said(message.removeprefix("gpushare: "))


def test_there_are_messages() -> None:
    assert len(_quoted()) > 40
    assert len(_cells()) > 10


@pytest.mark.parametrize(
    "message",
    ["there is no job .... See: gpushare list", "allocate ...: ... in use, ... hidden...: ..."],
)
def test_a_message_that_nobody_says_is_found(message: str) -> None:
    assert not is_said(message)
