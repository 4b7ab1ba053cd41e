"""Keeps C++ files small and plain: none over 400 lines, the median under 150, ASCII only.

A long file is where "the logic" collects. Split it at its nouns before it gets there. The same is
true of a folder: none of csrc or of the Python package has more than 25 source files.
"""

from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path

from source_tree import cpp_files, main

MAX_LINES = 400
MAX_MEDIAN = 150
MAX_FILES = 25


def find_problems(root: Path) -> list[str]:
    """One line for each file that is too long or not ASCII, and one for the median."""
    problems = []
    lengths = []
    for path in cpp_files(root, "csrc", "tests", "benchmarks"):
        name = path.relative_to(root)
        text = path.read_text()
        lengths.append(len(text.splitlines()))
        if lengths[-1] > MAX_LINES:
            problems.append(f"{name}: {lengths[-1]} lines, at most {MAX_LINES}")
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.isascii():
                problems.append(f"{name}:{number}: not ASCII")
    median = statistics.median(lengths) if lengths else 0
    if median >= MAX_MEDIAN:
        problems.append(f"the median C++ file has {median:g} lines, not under {MAX_MEDIAN}")
    folders = Counter(path.parent for path in cpp_files(root, "csrc"))
    folders.update(path.parent for path in sorted((root / "python").rglob("*.py")))
    problems += [
        f"{folder.relative_to(root)}: {count} files, at most {MAX_FILES}"
        for folder, count in folders.items()
        if count > MAX_FILES
    ]
    return problems


if __name__ == "__main__":
    main(find_problems, "files")
