"""All of the device suite, on the machine with the GPU; started by `scripts/device_suite run OUT`.

Configures, builds and installs into build/device, runs the C++ tests of the CUDA driver's memory,
the GPU tests and the device benchmarks, and writes OUT/results.json, results.md and log.txt. A part
that fails does not stop the others, but for those that need what it makes. Everything ends in time
for DEVICE_SUITE_SECONDS. Of tests and benchmarks either can be left out.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.device import machine, results, run
from benchmarks.processes import ROOT

SECONDS = 570.0
BUILD = ROOT / "build" / "device"
PACKAGE = BUILD / "package"
CPP_FILTER = "*Cuda*"
LAST_LINES = 40
KINDS = ("tests", "benchmarks")


@dataclass(kw_only=True)
class Part:
    """One command of the suite, and what came of it."""

    name: str
    command: list[str]
    seconds: float = 0.0
    exit_status: int | None = None
    """None: it was not run."""
    reason: str = ""
    """Why not, or what ended it."""
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """With their reasons."""
    last_lines: list[str] = field(default_factory=list)
    """Of what it wrote, if it ended badly."""
    reports: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether it ran, and nothing of it failed."""
        return self.exit_status == 0 and not self.failed


class Suite:
    """The parts, one after the other."""

    def __init__(self, out: Path) -> None:
        """Writes to the folder `out`."""
        self._out = out
        self._deadline = time.monotonic() + float(os.environ.get("DEVICE_SUITE_SECONDS", SECONDS))
        self._log_path = out / "log.txt"
        self._log = self._log_path.open("w")
        self._work = BUILD / "results"
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir(parents=True)
        self.parts: list[Part] = []

    def close(self) -> None:
        """Ends the log."""
        self._log.close()

    def run(self, kinds: Sequence[str]) -> bool:
        """Builds, then all of these kinds; True if everything is good."""
        is_built = self._build()
        if "tests" in kinds:
            self._run_tests(is_built)
        if "benchmarks" in kinds:
            self._run_benchmarks(is_built)
        return all(part.is_good for part in self.parts)

    def _run_tests(self, is_built: bool) -> None:
        if has_cpp_tests():
            self._cpp_tests(is_possible=self.parts[0].is_good)
        else:
            reason = "skipped: no googletest in the pack"
            self.parts.append(Part(name="C++ tests", command=[], exit_status=0, reason=reason))
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/gpu"]
        xml = self._work / "gpu.xml"
        self._test("GPU tests", [*pytest, f"--junitxml={xml}"], xml, 240, is_built)

    def _run_benchmarks(self, is_built: bool) -> None:
        for name in run.NAMES:
            path = self._work / f"{name}.json"
            command = [sys.executable, "-m", "benchmarks.device.run", name, "--json", str(path)]
            part = self._start(f"benchmark {name}", command, 150, is_built)
            if part.exit_status is not None:
                results.read_reports(path, part)
            self._write()

    def _build(self) -> bool:
        """Whether all of it succeeded."""
        fake = ["fakecuda", "fakenvml", "fakecuda_ops"] if machine.is_fake() else []
        targets = ["_C", "gpushared", *fake]
        steps = [
            ("configure", configure_command(), 90),
            ("build", ["cmake", "--build", str(BUILD), "-j", cores(), "--target", *targets], 300),
            ("install", ["cmake", "--install", str(BUILD), "--prefix", str(PACKAGE)], 30),
        ]
        is_good = True
        for name, command, seconds in steps:
            is_good = self._start(name, command, seconds, is_good).is_good
        if is_good:
            copy_package()
        self._write()
        return is_good

    def _cpp_tests(self, *, is_possible: bool) -> None:
        target = "gs_vm_tests"
        command = ["cmake", "--build", str(BUILD), "-j", cores(), "--target", target]
        is_built = self._start("build C++ tests", command, 200, is_possible).is_good
        xml = self._work / "cpp.xml"
        program = BUILD / "tests" / "cpp" / target
        command = [str(program), f"--gtest_filter={CPP_FILTER}", f"--gtest_output=xml:{xml}"]
        self._test("C++ tests", command, xml, 60, is_built)

    def _test(
        self, name: str, command: list[str], xml: Path, seconds: float, is_possible: bool
    ) -> None:
        """A part that writes JUnit's XML."""
        part = self._start(name, command, seconds, is_possible)
        if part.exit_status is not None:
            results.read_junit(xml, part)
        self._write()

    def _start(self, name: str, command: Sequence[str], seconds: float, is_possible: bool) -> Part:
        """Runs a part in a process group of its own, at most so long."""
        part = Part(name=name, command=list(command))
        self.parts.append(part)
        # A rehearsal may be on a machine of any speed.
        limit = 5 * seconds if machine.is_fake() else seconds
        left = min(limit, self._deadline - time.monotonic())
        if not is_possible or left <= 0:
            part.reason = "out of time" if is_possible else "what it needs was not built"
            print(f"{name}: NOT RUN: {part.reason}", flush=True)
            return part
        print(f"{name} ...", flush=True)
        print(f"\n##### {name}: {' '.join(command)}", file=self._log, flush=True)
        log_bytes = self._log_path.stat().st_size
        begun = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            part.exit_status = process.wait(left)
        except subprocess.TimeoutExpired:
            part.reason = f"stopped after {left:.0f} s"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            part.exit_status = -signal.SIGKILL
        part.seconds = time.monotonic() - begun
        if not part.is_good:
            part.last_lines = self._lines_since(log_bytes)[-LAST_LINES:]
        verdict = "good" if part.is_good else f"FAILED ({part.exit_status}) {part.reason}"
        print(f"{name}: {verdict}, {part.seconds:.0f} s", flush=True)
        return part

    def _lines_since(self, log_bytes: int) -> list[str]:
        with self._log_path.open("rb") as log:
            log.seek(log_bytes)
            return log.read().decode(errors="replace").splitlines()

    def _write(self) -> None:
        """After each part, so that what is known is there whatever ends this."""
        results.write(self._out, self.parts)


def configure_command() -> list[str]:
    """CMake on the libraries of the pack, which it finds before the system's."""
    pack = Path(os.environ["DEVICE_SUITE_PACK"]).resolve()
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_PREFIX_PATH": str(pack),
        "GS_CUDA_INCLUDE": str(pack / "cuda"),
        "Python_EXECUTABLE": sys.executable,
        "GS_BUILD_TESTS": "ON" if has_cpp_tests() else "OFF",
        "GS_BUILD_FAKE_CUDA": "ON" if machine.is_fake() else "OFF",
        # Its compiler may be one that nobody has tried.
        "GS_WARNINGS_ARE_ERRORS": "OFF",
    }
    definitions = [f"-D{name}={value}" for name, value in options.items()]
    return ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", *definitions]


def cores() -> str:
    """How many may compile at once."""
    return str(len(os.sched_getaffinity(0)))


def has_cpp_tests() -> bool:
    """Whether the pack has what they need."""
    return (Path(os.environ["DEVICE_SUITE_PACK"]) / "googletest").is_dir()


def copy_package() -> None:
    """The Python half, beside the compiled one; build outputs of another torch stay behind."""
    unwanted = shutil.ignore_patterns("*.so", "bin", "_built.py", "__pycache__")
    source = ROOT / "python" / "gpushare"
    shutil.copytree(source, PACKAGE / "gpushare", ignore=unwanted, dirs_exist_ok=True)


def environment() -> dict[str, str]:
    """What all parts see besides: the built package, then what this Python lacks."""
    lacking = BUILD / "lacking"
    shutil.rmtree(lacking, ignore_errors=True)
    lacking.mkdir(parents=True)
    if not has_typer():
        for entry in (Path(os.environ["DEVICE_SUITE_PACK"]).resolve() / "python").iterdir():
            (lacking / entry.name).symlink_to(entry)
    paths = [str(PACKAGE), str(ROOT), str(lacking), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "GPUSHARE_PACKAGE": str(PACKAGE),
        "GPUSHARE_ANY_TORCH": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "FAKECUDA_LIBRARIES": str(BUILD / "fakecuda"),
    }


@functools.cache
def has_typer() -> bool:
    """Whether this Python's own packages can run the command line."""
    program = "import typer, rich"
    return subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0  # noqa: PLW1510


def main() -> None:
    """The exit status is 1 unless all is good."""
    kinds = sys.argv[2:] or KINDS
    if unknown := set(kinds) - set(KINDS):
        raise SystemExit(f"error: {', '.join(sorted(unknown))}: there are {' and '.join(KINDS)}")
    out = Path(sys.argv[1]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.environ.update(environment())
    with contextlib.closing(Suite(out)) as suite:
        is_good = suite.run(kinds)
    print((out / "results.md").read_text())
    raise SystemExit(0 if is_good else 1)


if __name__ == "__main__":
    main()
