"""The C++ programs that benchmarks need, built on first use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.processes import ROOT

FOLDER = ROOT / "build" / "benchmarks"


def build(target: str) -> Path:
    """The path of a built target of benchmarks/cpp.

    Raises:
        subprocess.CalledProcessError: if it does not build; the output says why.
    """
    configure = ["cmake", "-S", str(ROOT), "-B", str(FOLDER), "-G", "Ninja"]
    options = [
        "-DGS_BUILD_MODULE=OFF",
        "-DGS_BUILD_BENCHMARKS=ON",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    subprocess.run([*configure, *options], check=True, capture_output=True)
    subprocess.run(["ninja", "-C", str(FOLDER), target], check=True, capture_output=True)
    for name in (target, f"lib{target}.so"):
        if (path := FOLDER / "benchmarks" / "cpp" / name).exists():
            return path
    raise FileNotFoundError(f"{target} is not in {FOLDER / 'benchmarks' / 'cpp'}")
