"""What the checks share: the tree's files, and how a check reports."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPP_SUFFIXES = (".h", ".cpp")


def cpp_files(root: Path, *folders: str) -> Iterator[Path]:
    """All C++ files below these folders of `root`, in a fixed order."""
    for folder in folders:
        yield from sorted(p for p in (root / folder).rglob("*") if p.suffix in CPP_SUFFIXES)


def text_files(root: Path) -> Iterator[Path]:
    """The files that belong to the repository (git's, and new ones it does not ignore)."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    for name in sorted(listed.stdout.decode().split("\0")):
        path = root / name
        # Binary files (a picture, a fuzzer's input) have a zero byte early on.
        if name and path.is_file() and b"\0" not in path.read_bytes()[:4096]:
            yield path


def main(find_problems: Callable[[Path], list[str]], what: str) -> None:
    """Runs one check on the tree; the exit status says whether it is clean."""
    problems = find_problems(ROOT)
    for problem in problems:
        print(problem)
    print(f"{what}: {len(problems) or 'no'} problem{'' if len(problems) == 1 else 's'}")
    sys.exit(1 if problems else 0)
