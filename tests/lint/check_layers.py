"""Holds the includes and the libraries of csrc/ to the layer table in csrc/README.md.

The table is the only place of the rule. Besides: an include of ours starts at the repository's root
and names its layer; torch and Python headers are for `binding` only; `sched`, `watch` and `wire`
decide and describe, so they see no clock, thread or system header. Where csrc/LAYER/README.md has a
table of rooms, the layer's folders are rooms on floors, and no include goes to a higher floor.
"""

from __future__ import annotations

import re
from pathlib import Path

from source_tree import cpp_files, main

_ROW = re.compile(r"^\| `(\w+)` \| ([^|]+) \|")
_ROOM_ROW = re.compile(r"^\| (\d+) \| `(\w+|\.)` \| [^|]+ \| ([^|]+) \|")
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


def read_rooms(readme: Path) -> dict[str, set[str]]:
    """Room -> the rooms it may include, from a layer's README.md; empty where there is no table.

    A row names its floor, its room, what lives there, and what it may include: "-", "all below",
    or rooms of lower floors. The room "." is the files that lie in the layer itself; where it has
    no row it is the top.
    """
    if not readme.exists():
        return {}
    floors: dict[str, int] = {}
    listed: dict[str, str] = {}
    for line in readme.read_text().splitlines():
        if row := _ROOM_ROW.match(line):
            floors[row.group(2)] = int(row.group(1))
            listed[row.group(2)] = row.group(3).strip()
    rooms: dict[str, set[str]] = {}
    for room, text in listed.items():
        below = {other for other, floor in floors.items() if floor < floors[room]}
        names = {name.strip() for name in text.split(",")} - {"-"}
        rooms[room] = below if text == "all below" else below & names
    if rooms:
        rooms.setdefault(".", set(rooms))
    return rooms


def _room_of(name: Path) -> str:
    """The room of csrc/LAYER/ROOM/file; "." for a file that lies in the layer itself."""
    return name.parts[2] if len(name.parts) > 3 else "."


def _room_problem_of(name: Path, target: str, rooms: dict[str, set[str]]) -> str | None:
    """Why this file must not include `target`, which is of its own layer, if so."""
    room, used = _room_of(name), _room_of(Path(target))
    if used not in rooms:
        return f"{target}: no row for `{used}` in csrc/{name.parts[1]}/README.md"
    if used not in rooms[room] | {room}:
        below = ", ".join(sorted(rooms[room])) or "itself"
        return f"{target}: room `{room}` may include only {below}"
    return None


def _room_problems(root: Path) -> list[str]:
    """Of each layer whose README.md has a table of rooms."""
    problems = []
    for readme in sorted((root / "csrc").glob("*/README.md")):
        rooms = read_rooms(readme)
        if not rooms:
            continue
        layer = readme.parent.name
        for path in cpp_files(root, f"csrc/{layer}"):
            name = path.relative_to(root)
            room = _room_of(name)
            if room not in rooms:
                problems.append(f"{name}: no row for `{room}` in csrc/{layer}/README.md")
                continue
            text = path.read_text()
            for match in _INCLUDE.finditer(text):
                if not match[2].startswith(f"csrc/{layer}/"):
                    continue
                problem = _room_problem_of(name, match[2], rooms)
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
    return _include_problems(root, table) + _room_problems(root) + _library_problems(root, table)


if __name__ == "__main__":
    main(find_problems, "layers")
