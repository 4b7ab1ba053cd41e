"""Holds the includes and the libraries of csrc/ to the layer table in csrc/README.md.

The table is the only place of the rule. Besides: an include of ours starts at the repository's root
and names its layer; torch and Python headers are for `binding` only; `arbiter`, `host`, `sched`,
`watch` and `wire` decide and describe, so they see no clock, thread or system header. Where
csrc/LAYER/README.md has a table of folders, the layer's folders are folders on levels, and no
include goes to a higher level.
"""

from __future__ import annotations

import re
from pathlib import Path

from source_tree import cpp_files, main

_ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \|")
_FOLDER_ROW = re.compile(r"^\| (\d+) \| `(\w+|\.)` \| [^|]+ \| ([^|]+) \|")
_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
_LIBRARY = re.compile(r"^gs_layer\((\w+)((?: \w+)*)\)", re.MULTILINE)

_TORCH_OR_PYTHON = re.compile(r"^(torch|ATen|c10|caffe2|pybind11)/|^Python\.h$")
_IMPURE = re.compile(
    r"^(thread|mutex|shared_mutex|condition_variable|future|chrono|ctime|time\.h|random)$"
    r"|^(sys|linux|netinet|arpa)/|^(unistd|fcntl|poll|signal|pthread)\.h$|^asio"
    r"|^csrc/base/(clock|mutex|unique_fd)\.h$"
)
_PURE_LAYERS = {"arbiter", "host", "sched", "watch", "wire"}


def read_table(readme: Path) -> dict[str, set[str]]:
    """Layer -> the layers it may include, from the table in csrc/README.md."""
    table: dict[str, set[str]] = {}
    for line in readme.read_text().splitlines():
        if row := _ROW.match(line):
            names = {name.strip() for name in row.group(2).split(",")}
            table[row.group(1)] = names - {"-"}
    return table


def read_folders(readme: Path) -> dict[str, set[str]]:
    """Folder -> the folders it may include, from a layer's README.md; empty without a table.

    A row names its level, its folder, what lives there, and what it may include: "-", "all below",
    or folders of lower levels. The folder "." is the files that lie in the layer itself; where it
    has no row it is the top.
    """
    if not readme.exists():
        return {}
    levels: dict[str, int] = {}
    listed: dict[str, str] = {}
    for line in readme.read_text().splitlines():
        if row := _FOLDER_ROW.match(line):
            levels[row.group(2)] = int(row.group(1))
            listed[row.group(2)] = row.group(3).strip()
    folders: dict[str, set[str]] = {}
    for folder, text in listed.items():
        below = {other for other, level in levels.items() if level < levels[folder]}
        names = {name.strip() for name in text.split(",")} - {"-"}
        folders[folder] = below if text == "all below" else below & names
    if folders:
        folders.setdefault(".", set(folders))
    return folders


def _folder_of(name: Path) -> str:
    """The folder of csrc/LAYER/ROOM/file; "." for a file that lies in the layer itself."""
    return name.parts[2] if len(name.parts) > 3 else "."


def _folder_problem_of(name: Path, target: str, folders: dict[str, set[str]]) -> str | None:
    """Why this file must not include `target`, which is of its own layer, if so."""
    folder, used = _folder_of(name), _folder_of(Path(target))
    if used not in folders:
        return f"{target}: no row for `{used}` in csrc/{name.parts[1]}/README.md"
    if used not in folders[folder] | {folder}:
        below = ", ".join(sorted(folders[folder])) or "itself"
        return f"{target}: folder `{folder}` may include only {below}"
    return None


def _folder_problems(root: Path) -> list[str]:
    """Of each layer whose README.md has a table of folders."""
    problems = []
    for readme in sorted((root / "csrc").glob("*/README.md")):
        folders = read_folders(readme)
        if not folders:
            continue
        layer = readme.parent.name
        for path in cpp_files(root, f"csrc/{layer}"):
            name = path.relative_to(root)
            folder = _folder_of(name)
            if folder not in folders:
                problems.append(f"{name}: no row for `{folder}` in csrc/{layer}/README.md")
                continue
            text = path.read_text()
            for match in _INCLUDE.finditer(text):
                if not match[2].startswith(f"csrc/{layer}/"):
                    continue
                problem = _folder_problem_of(name, match[2], folders)
                if problem:
                    line = text.count("\n", 0, match.start(1)) + 1
                    problems.append(f"{name}:{line}: {problem}")
    return problems


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
    return _include_problems(root, table) + _folder_problems(root) + _library_problems(root, table)


if __name__ == "__main__":
    main(find_problems, "layers")
