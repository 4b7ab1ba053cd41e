"""Keeps the repository's text plain: no blanks at line ends, a newline at the end of a file, no
marks of an unfinished merge, nothing big.
"""

from __future__ import annotations

import re
from pathlib import Path

from source_tree import main, text_files

MAX_BYTES = 500_000
FUZZ_INPUTS = ("tests", "fuzz", "corpus")
_MERGE_MARK = re.compile(r"^(<{7}|>{7}) |^={7}$")


def find_problems(root: Path) -> list[str]:
    """One line for each place."""
    problems = []
    for path in text_files(root):
        name = path.relative_to(root)
        if name.parts[:3] == FUZZ_INPUTS:  # they are what they are
            continue
        size = path.stat().st_size
        if size > MAX_BYTES:
            problems.append(f"{name}: {size} bytes, at most {MAX_BYTES}")
            continue
        text = path.read_text()
        if text and not text.endswith("\n"):
            problems.append(f"{name}: no newline at its end")
        if text.endswith("\n\n"):
            problems.append(f"{name}: empty lines at its end")
        for number, line in enumerate(text.split("\n"), start=1):
            if line != line.rstrip():
                problems.append(f"{name}:{number}: blanks at the end of the line")
            if _MERGE_MARK.match(line):
                problems.append(f"{name}:{number}: a mark of a merge")
    return problems


if __name__ == "__main__":
    main(find_problems, "text")
