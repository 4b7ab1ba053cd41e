"""Functions of csrc/sched that are named as questions change nothing.

A reader takes `is_held(step, lane)` for a look, and may call it twice or leave it out. So what acts
is named by a verb, and a question takes nothing that it could change: no Step, Table or part of one
by a reference or pointer that is not const.
"""

from __future__ import annotations

import re
from pathlib import Path

from source_tree import cpp_files, main

FOLDER = "csrc/sched"
_WORDS = "is|are|has|may|can|could|was|will|fits|takes|waits|needs|goes|does|gives|counts|stays"
_STATE = "Step|Table|Device|Lane|Lease|LaneChoice|LanePool|Ledger|JobTable|JobRecords|Job|RoomPool"
# A declaration or a definition: its type stands before the name, as it does not before a call.
_QUESTION = re.compile(
    rf"^[ \t]*(?:\[\[nodiscard\]\] )?(?:static |inline |constexpr |virtual )*"
    rf"(?!return\b|else\b)[\w:<>,*& ]+[ *&](?:\w+::)*((?:{_WORDS})_\w+)"
    rf"\(([^()]*)\)(?!\s*[.,)?&|+-])",
    re.MULTILINE,
)
_CHANGEABLE = re.compile(rf"(?:^|,)\s*(?:(?:sched::)?(?:{_STATE}|WaitingNeed))\s*[&*]")


def problems_of(name: str, text: str) -> list[str]:
    """One line for each question of one file that could change what it is asked about."""
    problems = []
    for match in _QUESTION.finditer(text):
        changed = _CHANGEABLE.search(match[2])
        if changed:
            line = text.count("\n", 0, match.start(1)) + 1
            what = changed[0].lstrip(", \n")
            problems.append(
                f"{name}:{line}: {match[1]}() asks, and takes a {what} that it could change"
            )
    return problems


def find_problems(root: Path) -> list[str]:
    """One line for each question that could act, in all files of the scheduler."""
    problems = []
    for path in cpp_files(root, FOLDER):
        problems += problems_of(path.relative_to(root).as_posix(), path.read_text())
    return problems


if __name__ == "__main__":
    main(find_problems, "questions")
