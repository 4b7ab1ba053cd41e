"""Holds the includes and the libraries of csrc/ to the layer table in csrc/README.md.

The table is the only place of the rule. Besides: an include of ours starts at the repository's root
and names its layer; torch and Python headers are for `binding` only; `sched`, `watch` and
`wire` decide and describe, so they see no clock, thread or system header.
"""

from __future__ import annotations

import re
from pathlib import Path

from source_tree import cpp_files, main

_ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \|")
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
_LIBRARY = re.compile(r"^gs_layer\((\w+)((?: \w+)*)\)", re.MULTILINE)

_TORCH_OR_PYTHON = re.compile(r"^(torch|ATen|c10|caffe2|pybind11)/|^Python\.h$")
_IMPURE = re.compile(
    r"^(thread|mutex|shared_mutex|condition_variable|future|chrono|ctime|time\.h|random)$"
    r"|^(sys|linux|netinet|arpa)/|^(unistd|fcntl|poll|signal|pthread)\.h$|^asio"
    r"|^csrc/base/(clock|mutex|unique_fd)\.h$"
)
_PURE_LAYERS = {"sched", "watch", "wire"}


def read_table(readme: Path) -> dict[str, set[str]]:
    """Layer -> the layers it may include, from the table in csrc/README.md."""
    table: dict[str, set[str]] = {}
    for line in readme.read_text().splitlines():
        if row := _ROW.match(line):
            names = {name.strip() for name in row.group(2).split(",")}
            table[row.group(1)] = names - {"-"}
    return table


def _problem_of(layer: str, is_quoted: bool, target: str, allowed: set[str]) -> str | None:
    """Why `layer` must not include `target`, if so."""
    if is_quoted and not target.startswith("csrc/"):
        return f'"{target}" does not start at the repository\'s root'
    if target.startswith("csrc/"):
        used = target.split("/")[1]
        if used not in allowed | {layer}:
            return f"{target}: `{layer}` may include only {', '.join(sorted(allowed)) or 'itself'}"
    if layer != "binding" and _TORCH_OR_PYTHON.search(target):
        return f"{target}: torch and Python headers are for `binding` only"
    if layer in _PURE_LAYERS and _IMPURE.search(target):
        return f"{target}: `{layer}` has no clock, thread or system call"
    return None


def _include_problems(root: Path, table: dict[str, set[str]]) -> list[str]:
    problems = []
    for path in cpp_files(root, "csrc"):
        name = path.relative_to(root)
        layer = name.parts[1]
        if layer not in table:
            problems.append(f"{name}: no row for `{layer}` in csrc/README.md")
            continue
        text = path.read_text()
        for match in _INCLUDE.finditer(text):
            problem = _problem_of(layer, match[1] == '"', match[2], table[layer])
            if problem:
                line = text.count("\n", 0, match.start(1)) + 1
                problems.append(f"{name}:{line}: {problem}")
    return problems


def _library_problems(root: Path, table: dict[str, set[str]]) -> list[str]:
    """A library that links what its layer may not include would make the table a lie."""
    problems = []
    for match in _LIBRARY.finditer((root / "CMakeLists.txt").read_text()):
        layer, linked = match[1], set(match[2].split())
        for extra in sorted(linked - table.get(layer, set())):
            problems.append(f"CMakeLists.txt: gs_layer({layer}) links `{extra}` against the table")
    return problems


def find_problems(root: Path) -> list[str]:
    """One line for each include and each library that the table does not allow."""
    table = read_table(root / "csrc" / "README.md")
    if not table:
        return ["csrc/README.md: no layer table found"]
    return _include_problems(root, table) + _library_problems(root, table)


if __name__ == "__main__":
    main(find_problems, "layers")
