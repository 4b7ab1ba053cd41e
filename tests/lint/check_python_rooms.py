"""Finds circles among the modules of python/gpushare, imports inside functions included.

A circle of imports works only as long as each of its imports stands in the right place. An import
for type checkers alone is none.
"""

from __future__ import annotations

import ast
from pathlib import Path

from source_tree import main


def _imported(tree: ast.AST, modules: set[str]) -> set[str]:
    found = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in modules else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        found |= _imported(node, modules)
    return found & modules


def _graph(root: Path) -> dict[str, set[str]]:
    """Module -> the modules of the package that it imports; packages themselves are left out."""
    package = root / "python" / "gpushare"
    paths = {
        ".".join(("gpushare", *path.relative_to(package).with_suffix("").parts)): path
        for path in sorted(package.rglob("*.py"))
        if path.name != "__init__.py"
    }
    return {
        name: _imported(ast.parse(path.read_text()), set(paths)) - {name}
        for name, path in paths.items()
    }


def find_problems(root: Path) -> list[str]:
    """One line for each module from which imports lead back to it, with the way they take."""
    graph = _graph(root)
    problems = []
    for start in graph:
        ways = {start: [start]}
        queue = [start]
        while queue:
            name = queue.pop(0)
            for other in sorted(graph[name]):
                if other == start:
                    problems.append(" -> ".join([*ways[name], start]))
                    queue = []
                    break
                if other not in ways:
                    ways[other] = [*ways[name], other]
                    queue.append(other)
    return problems


if __name__ == "__main__":
    main(find_problems, "circles of Python modules")
