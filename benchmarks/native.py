"""The C++ programs that benchmarks need, built on first use."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.processes import ROOT

FOLDER = ROOT / "build" / "benchmarks"
_REMEDY = "`tools/setup_system.sh test` installs what benchmarks are built with"


def build(target: str) -> Path:
    """The path of a built target of benchmarks/cpp.

    Raises:
        SystemExit: It does not build; the text is one line that says what is missing.
    """
    configure = ["cmake", "-S", str(ROOT), "-B", str(FOLDER), "-G", "Ninja"]
    options = [
        "-DGS_BUILD_MODULE=OFF",
        "-DGS_BUILD_BENCHMARKS=ON",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    _run([*configure, *options])
    _run(["ninja", "-C", str(FOLDER), target])
    for name in (target, f"lib{target}.so"):
        if (path := FOLDER / "benchmarks" / "cpp" / name).exists():
            return path
    raise FileNotFoundError(f"{target} is not in {FOLDER / 'benchmarks' / 'cpp'}")


def _run(command: list[str]) -> None:
    program = command[0]
    if shutil.which(program) is None:
        raise SystemExit(f"benchmarks: {program} is not installed; {_REMEDY}")
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = FOLDER / f"{program}.log"
    log.write_text(done.stdout + done.stderr)
    # CMake breaks its lines: `provided by "benchmark"`, or `Could NOT find GTest`.
    words = " ".join(done.stderr.split())
    missing = re.search(r'provided by "([^"]+)"|Could (?:NOT|not) find (\w+)', words)
    why = f"finds no {missing[1] or missing[2]}" if missing else f"failed, see {log}"
    raise SystemExit(f"benchmarks: {program} {why}; {_REMEDY}")
