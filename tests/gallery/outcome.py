"""What a program does: what it prints, the files it leaves, and how it ends."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.processes import ROOT, job_environment
from tests.support import forked

PROGRAMS = ROOT / "tests" / "gallery" / "programs"
EXAMPLES = ROOT / "examples" / "integrations"
TESTED_BY_THEMSELVES = ("ray_train", "ray_tune")
"""Examples for which `test_ray.py` and its like are."""
WAIT_SECONDS = 120
"""A program takes some seconds; one that waits for ever fails."""
INJECT = str(ROOT / "python" / "gpushare" / "_inject")
SMALL_BYTES = 64 << 20
CHUNK_BYTES = 2 << 20


@dataclass(frozen=True)
class Outcome:
    """One run of a program."""

    printed: str
    files: dict[str, str]
    """Name -> digest."""
    exit_code: int


@dataclass(frozen=True)
class Run:
    """A program that runs, in a folder of its own."""

    process: Any
    folder: tempfile.TemporaryDirectory[str]

    def end(self) -> tuple[Outcome, str]:
        """Waits for its end; also returns what it wrote to stderr."""
        with self.folder as name:
            printed, errors = self.process.communicate(timeout=WAIT_SECONDS)
            files = {
                str(path.relative_to(name)): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(Path(name).rglob("*"))
                if path.is_file()
            }
        return Outcome(printed, files, self.process.returncode), errors

    def stop_for(self, seconds: float) -> None:
        """Ctrl-Z, and `fg` after a while: for it and its children."""
        pids = [self.process.pid, *_descendants(self.process.pid)]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):  # it has ended
                    os.kill(pid, number)
            time.sleep(seconds)


def _descendants(pid: int) -> list[int]:
    children = [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]
    return [*children, *(each for child in children for each in _descendants(child))]


def names() -> list[str]:
    """Returns all programs whose packages are here, as `loops/plain`, and all examples of docs."""
    paths = {
        str(path.relative_to(PROGRAMS).with_suffix("")): path for path in PROGRAMS.rglob("*.py")
    }
    paths |= {
        f"examples/{path.stem}": path
        for path in EXAMPLES.glob("*.py")
        if path.stem not in TESTED_BY_THEMSELVES
    }
    return sorted(name for name, path in paths.items() if not missing(path))


def path_of(name: str) -> Path:
    """Returns the file of a program."""
    is_example = name.startswith("examples/")
    return EXAMPLES / f"{Path(name).name}.py" if is_example else PROGRAMS / f"{name}.py"


def missing(path: Path) -> list[str]:
    """Returns the packages that a program's first line says it needs, and that are not here."""
    needs = re.search(r"Needs: ([a-z, ]+)", path.read_text().partition("\n")[0])
    packages = needs[1].split(", ") if needs else []
    return [package for package in packages if find_spec(package) is None]


def start(name: str, env: dict[str, str]) -> Run:
    """Starts a program; its children too are under gpushare if it is."""
    folder = tempfile.TemporaryDirectory(prefix="gallery-")
    is_managed = "GPUSHARE_SOCKET" in env
    settings = {"GPUSHARE_RUN": "1", "GPUSHARE_REQUIRE": "1"} if is_managed else {}
    base = job_environment({"GPUSHARE_DISABLE": "" if is_managed else "1"} | env | settings)
    if is_managed:
        base["PYTHONPATH"] = f"{INJECT}:{base['PYTHONPATH']}"
    program = str(path_of(name))
    process = forked.start(
        ["-m", "tests.gallery.job", program],
        base,
        cwd=Path(folder.name),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    return Run(process, folder)


@functools.cache
def stock(name: str) -> Outcome:
    """What it does on stock torch."""
    return start(name, {}).end()[0]


def peaks(errors: str) -> list[float]:
    """Returns what the reports of its processes say, in bytes.

    Args:
        errors: What it wrote to stderr.
    """
    units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    found = re.findall(r"; peak ([0-9.]+) (B|KiB|MiB|GiB)", errors)
    return [float(number) * units[unit] for number, unit in found]


def tight_capacity(peaks: list[float]) -> int:
    """Returns what two at once must do with, in bytes: less than both need, enough for either.

    Args:
        peaks: Of the processes of one of them, in bytes.
    """
    part = 0.8 if sum(peaks) < SMALL_BYTES else 0.6
    # Tensors that are made between iterations are in chunks of their own.
    least = sum(peaks) + 2 * len(peaks) * CHUNK_BYTES
    return round(max(2 * sum(peaks) * part, least))
