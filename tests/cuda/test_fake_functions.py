"""The fake has each function of the CUDA runtime that PyTorch's libraries import."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

from tests.cuda import fake

_RUNTIME = re.compile(r"^(__)?cuda[A-Z]\w*$")


def _symbols(library, which):
    listed = subprocess.run(
        ["nm", "--dynamic", which, "--format=posix", str(library)],
        check=True,
        capture_output=True,
        text=True,
    )
    names = (line.split()[0].split("@")[0] for line in listed.stdout.splitlines())
    return {name for name in names if _RUNTIME.match(name)}


def test_no_function_is_left_to_the_real_runtime():
    (folder,) = importlib.util.find_spec("torch").submodule_search_locations
    libraries = sorted(Path(folder, "lib").glob("lib*.so"))
    imported = set().union(*(_symbols(library, "--undefined-only") for library in libraries))
    provided = _symbols(fake.folder() / "libcuda.so.1", "--defined-only")
    assert "cudaMalloc" in imported
    assert imported - provided == set()
