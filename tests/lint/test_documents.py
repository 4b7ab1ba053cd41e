"""Documents name files, functions and sections that are there."""

import re
from collections import defaultdict

import pytest

SOURCES = ("csrc", "python/gpushare")
# "`stand_in_line()` in `handle_lease.cpp`": files without their folders, as folders come and go. A
# name that two files have stands with as many folders as it takes: `client/memory/room.cpp`.
_FUNCTION = re.compile(r"`(\w+)\(\)` in `([\w./]+)`")
_FILE = re.compile(r"`([\w/]+\.(?:cpp|h|py))`")
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
FOLLOWED = (
    "lanes.md",
    "life_of_a_lease.md",
    "life_of_an_allocation.md",
    "memory.md",
    "scheduler.md",
)


def _is_defined(function, source):
    """Not only called: a type, or ``def``, stands before its name."""
    before = r"^ {0,2}(?! |//|return\b)[\w:<>,*&\[\] ]*[ *&:]"
    pattern = rf"{before}{function}\(|^ *def {function}\("
    return re.search(pattern, source, flags=re.MULTILINE) is not None


@pytest.fixture
def sources(root):
    """Texts by each way to name the file: its base name, with its folder, and so on."""
    found = defaultdict(list)
    for folder in SOURCES:
        for path in (root / folder).rglob("*"):
            if path.suffix in {".cpp", ".h", ".py"}:
                parts = path.relative_to(root).parts
                for first in range(len(parts)):
                    found["/".join(parts[first:])].append(path.read_text())
    return found


@pytest.mark.parametrize("name", FOLLOWED)
def test_each_function_is_in_its_file(root, sources, name):
    text = (root / "docs" / name).read_text()
    named = set(_FUNCTION.findall(text))
    missing = [
        f"{function}() in {file}"
        for function, file in sorted(named)
        if not any(_is_defined(function, source) for source in sources[file])
    ]
    assert not missing, "\n".join(missing)
    assert len(named) > 10, "the pattern finds nothing any more"


@pytest.mark.parametrize("name", FOLLOWED)
def test_each_file_is_there_once(root, sources, name):
    text = (root / "docs" / name).read_text()
    named = {file for _, file in _FUNCTION.findall(text)} | set(_FILE.findall(text))
    assert sorted(named - set(sources)) == []
    assert [file for file in sorted(named) if len(sources[file]) > 1] == [], "name their folders"


def _anchor(title):
    """A heading's, as the hosts of repositories make it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def _documents(root):
    return [*root.glob("*.md"), *(root / "docs").rglob("*.md")]


def test_each_link_leads_somewhere(root):
    broken = []
    for path in _documents(root):
        for target, section in _LINK.findall(path.read_text()):
            if "://" in target:
                continue
            there = (path.parent / target) if target else path
            if not there.exists():
                broken.append(f"{path.relative_to(root)}: {target}")
            elif section and there.suffix == ".md":
                titles = re.findall(r"^#+ (.*)$", there.read_text(), flags=re.MULTILINE)
                if section not in map(_anchor, titles):
                    broken.append(f"{path.relative_to(root)}: {target}#{section}")
    assert broken == []
