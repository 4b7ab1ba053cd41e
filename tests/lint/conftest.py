"""A small tree for the checks to be tried on: a lint check that finds nothing must be able to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import source_tree

Write = Callable[[str, str], None]


@pytest.fixture
def root() -> Path:
    return source_tree.ROOT


@pytest.fixture
def small_tree(tmp_path: Path, root: Path) -> Path:
    """The real layer table over an otherwise empty tree."""
    (tmp_path / "csrc").mkdir()
    (tmp_path / "csrc" / "README.md").write_text((root / "csrc" / "README.md").read_text())
    (tmp_path / "CMakeLists.txt").write_text("gs_layer(base)\n")
    return tmp_path


@pytest.fixture
def write(small_tree: Path) -> Write:
    """write(path, text): a file of the small tree."""

    def write_file(name: str, text: str) -> None:
        path = small_tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return write_file
