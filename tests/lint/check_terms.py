"""Refuses words for which the glossary (CONTRIBUTING.md) has another one.

Only words that have no other use here are refused. The README may say "swap" and "offload" once
each, for people who search for them. The algorithm is called compare-and-swap, and C++ has its own.
"""

from __future__ import annotations

import re
from pathlib import Path

from source_tree import main, text_files

# Word -> the glossary's word.
REFUSED = {
    "tenant": "job",
    "timeslot": "quantum",
    "granule": "chunk",
    "offload": "spill",
    "swap": "spill, restore",
    "tmp_mem": "ephemeral",
    "lock_ok": "grant",
}
_PATTERN = re.compile("|".join(REFUSED), re.IGNORECASE)
# Another use of the same letters: the instruction, the standard library, the kernel's fields.
_ELSEWHERE = re.compile(
    r"compare[-_ ]and[-_ ]swap|\b(std::|iter_|\.)swap\(|Swap(Total|Free|Pss)?:|easily-swappable",
    re.IGNORECASE,
)
# The kernel's swap space, which `gpushare doctor` looks at.
_ALLOWED = {
    "python/gpushare/cli/checks/machine.py": {"swap"},
    "tests/python/test_cli_doctor.py": {"swap"},
}
# Once each, for searchers.
_ONCE = {"README.md": {"swap", "offload"}}
# Where the words are listed, or the licence's text stands.
_EXEMPT = {
    "tests/lint/check_terms.py",
    "tests/lint/test_terms.py",
    "CONTRIBUTING.md",
    "LICENSE",
}


def problems_of(name: str, text: str) -> list[str]:
    """One line for each refused word in one file."""
    problems = []
    may_stand_once = set(_ONCE.get(name, ()))
    for number, line in enumerate(text.splitlines(), start=1):
        for match in _PATTERN.finditer(_ELSEWHERE.sub("", line)):
            word = match[0].lower()
            if word in _ALLOWED.get(name, ()):
                continue
            if word in may_stand_once:
                may_stand_once.discard(word)
                continue
            problems.append(f'{name}:{number}: "{match[0]}": the glossary says {REFUSED[word]}')
    return problems


def find_problems(root: Path) -> list[str]:
    """One line for each refused word in the repository's text files."""
    problems = []
    for path in text_files(root):
        name = path.relative_to(root).as_posix()
        if name not in _EXEMPT:
            problems += problems_of(name, path.read_text(errors="replace"))
    return problems


if __name__ == "__main__":
    main(find_problems, "terms")
