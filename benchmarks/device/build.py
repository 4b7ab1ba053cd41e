"""Builds gpushare for this machine's torch, and makes the environment of the suite's parts."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.device import machine
from benchmarks.processes import ROOT

BUILD = ROOT / "build" / "device"
PACKAGE = BUILD / "package"
CPP_TESTS = "gs_vm_tests"


def configure_command() -> list[str]:
    """Returns CMake's command line. CMake finds the pack's libraries before the system's."""
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_PREFIX_PATH": str(_pack()),
        "GS_CUDA_INCLUDE": str(_pack() / "cuda"),
        "Python_EXECUTABLE": sys.executable,
        "GS_BUILD_TESTS": "ON" if has_cpp_tests() else "OFF",
        "GS_BUILD_FAKE_CUDA": "ON" if machine.is_fake() else "OFF",
        # The machine may have a compiler that nobody has tried.
        "GS_WARNINGS_ARE_ERRORS": "OFF",
    }
    definitions = [f"-D{name}={value}" for name, value in options.items()]
    return ["cmake", "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", *definitions]


def build_command(*targets: str) -> list[str]:
    """Returns CMake's command line to build these targets with all cores."""
    return ["cmake", "--build", str(BUILD), "-j", str(cores()), "--target", *targets]


def module_targets() -> list[str]:
    """Returns the targets of the Python package, and of the fake device if it was asked for."""
    fake = ["fakecuda", "fakenvml", "fakecuda_ops"] if machine.is_fake() else []
    return ["_C", "gpushared", *fake]


def cpp_program() -> Path:
    """Returns the path of the program of C++ tests."""
    return BUILD / "tests" / "cpp" / CPP_TESTS


def cores() -> int:
    """Returns how many processes may compute at once."""
    return len(os.sched_getaffinity(0))


def has_cpp_tests() -> bool:
    """Returns whether the pack has the libraries that the C++ tests need."""
    return (_pack() / "googletest").is_dir()


def copy_package() -> None:
    """Copies the Python half beside the compiled one, without build outputs of another torch."""
    unwanted = shutil.ignore_patterns("*.so", "bin", "_built.py", "__pycache__")
    source = ROOT / "python" / "gpushare"
    shutil.copytree(source, PACKAGE / "gpushare", ignore=unwanted, dirs_exist_ok=True)


def environment() -> dict[str, str]:
    """Returns variables for all parts, which find the built package and what this Python lacks."""
    lacking = BUILD / "lacking"
    shutil.rmtree(lacking, ignore_errors=True)
    lacking.mkdir(parents=True)
    if not has_typer():
        for entry in (_pack() / "python").iterdir():
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
        # A machine without a network may not know its own name.
        "NCCL_SOCKET_IFNAME": "lo",
        "GLOO_SOCKET_IFNAME": "lo",
    }


def has_module(name: str) -> bool:
    """Returns whether this Python has a module."""
    return importlib.util.find_spec(name) is not None


@functools.cache
def has_typer() -> bool:
    """Returns whether this Python's own packages can run the command line."""
    program = "import typer, rich"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    return done.returncode == 0


def _pack() -> Path:
    return Path(os.environ["DEVICE_SUITE_PACK"]).resolve()
