"""Text of other processes enters at few places, and each of them makes it printable.

``csrc/base/printable.h`` says why. A place is a line that takes a string from a peer's message or
opens what a process says of itself in /proc; the file it is in has to use ``printable``.
"""

from __future__ import annotations

import re
from pathlib import Path

from source_tree import main

_TAKES_TEXT = re.compile(
    r"get_ref<const std::string&>|\bget<std::string>|\"cmdline\"|/cmdline|/comm\b|/proc/net/unix"
)
_MAKES_PRINTABLE = re.compile(r"\b(to_)?printable\(")


def find_problems(root: Path) -> list[str]:
    """One line for each place that takes text and lets it through as it is."""
    problems = []
    for path in sorted((root / "csrc").rglob("*.cpp")):
        text = path.read_text()
        if _MAKES_PRINTABLE.search(text):
            continue
        problems += [
            f"{path.relative_to(root)}:{number}: takes text of another process and never calls "
            "printable() (csrc/base/printable.h)"
            for number, line in enumerate(text.splitlines(), 1)
            if _TAKES_TEXT.search(line) and not line.lstrip().startswith("//")
        ]
    if "printable(" not in (root / "csrc/base/log.cpp").read_text():
        problems.append("csrc/base/log.cpp: lines of the log have to go through printable()")
    return problems


if __name__ == "__main__":
    main(find_problems, "foreign text")
