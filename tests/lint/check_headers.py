"""Compiles headers of csrc/ alone, so that a file needs no other one included before it.

A header that is the first include of its own .cpp is compiled alone by every build that is not in
batches. The others are compiled here. One is compiled again only if it, or one of ours that it
includes, has changed: what passed is kept in build/. Headers of
`binding` see torch and Python, if this Python has a torch.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from source_tree import cpp_files, main

_OURS = re.compile(r'^#include "(csrc/[^"]+)"', re.MULTILINE)
_FLAGS = [
    "-std=c++20",
    "-fsyntax-only",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-DASIO_STANDALONE",
    "-DASIO_NO_DEPRECATED",
    "-DGS_EXPENSIVE_CHECKS=1",
]


def _begins_its_source(root: Path, header: Path) -> bool:
    source = header.with_suffix(".cpp")
    if not source.exists():
        return False
    first = re.search(r"^#include (.*)$", source.read_text(), re.MULTILINE)
    return first is not None and first[1] == f'"{header.relative_to(root).as_posix()}"'


def _binding_flags() -> list[str]:
    """Include folders of torch and Python, or nothing where there is no torch."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        return []
    include = Path(spec.submodule_search_locations[0]) / "include"
    folders = [include, include / "torch/csrc/api/include", Path(sysconfig.get_path("include"))]
    return [f"-isystem{folder}" for folder in folders]


def _with_includes(root: Path, header: str, seen: set[str]) -> set[str]:
    """The header and all of ours below it."""
    if header not in seen and (root / header).exists():
        seen.add(header)
        for included in _OURS.findall((root / header).read_text()):
            _with_includes(root, included, seen)
    return seen


def _fingerprint(root: Path, header: str, command: list[str]) -> str:
    digest = hashlib.sha256(" ".join(command).encode())
    for name in sorted(_with_includes(root, header, set())):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def _compile(root: Path, header: str, command: list[str]) -> str:
    """What the compiler says about a file that has this one include."""
    result = subprocess.run(
        [*command, "-x", "c++", "-I", str(root), "-"],
        input=f'#include "{header}"\n',
        cwd=root,
        check=False,
        capture_output=True,
        text=True,
    )
    return "" if result.returncode == 0 else result.stderr.strip() or "the compiler failed"


def find_problems(root: Path) -> list[str]:
    """What the compiler says of each header that does not compile alone."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        return ["no C++ compiler found (CXX, g++)"]
    binding = _binding_flags()
    todo: dict[str, list[str]] = {}
    for path in cpp_files(root, "csrc"):
        name = path.relative_to(root).as_posix()
        if _begins_its_source(root, path):
            continue
        if path.suffix == ".h" and (binding or not name.startswith("csrc/binding/")):
            extra = binding if name.startswith("csrc/binding/") else []
            todo[name] = [compiler, *_FLAGS, *extra]

    cache = root / "build" / "headers-checked.json"
    passed: dict[str, str] = json.loads(cache.read_text()) if cache.exists() else {}
    fingerprints = {name: _fingerprint(root, name, command) for name, command in todo.items()}
    changed = [name for name in todo if passed.get(name) != fingerprints[name]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = pool.map(lambda name: _compile(root, name, todo[name]), changed)
        findings = dict(zip(changed, texts, strict=True))
    cache.parent.mkdir(exist_ok=True)
    good = {name: mark for name, mark in fingerprints.items() if not findings.get(name)}
    cache.write_text(json.dumps(good, indent=1))
    return [f"{name}: does not compile alone\n{text}" for name, text in findings.items() if text]


if __name__ == "__main__":
    main(find_problems, "headers")
