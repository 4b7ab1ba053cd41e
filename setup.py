"""Builds the compiled parts with CMake; everything else about the package is in pyproject.toml.

CMake is the only description of the build: the daemon `gpushared` has nothing to do with Python,
and the C++ tests, sanitizers and benchmarks need the same targets. setuptools knows only extension
modules, so one fake extension without sources stands for "run CMake": configure, build, and
`cmake --install --prefix TARGET`. The install rules put `_C` into gpushare/ and `gpushared` into
gpushare/bin/; TARGET is the wheel's folder, or python/ for an editable install.

The build folder build/<cache tag> is kept, so that a second build is incremental. A wheel asks for
the torch that it was compiled for, and has it in its version
(0.1.0+torch2.13.cpu), so that an index may hold one for each. Environment:
CMAKE_ARGS (more arguments for CMake), CMAKE_BUILD_PARALLEL_LEVEL, CXX.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build" / str(sys.implementation.cache_tag)

sys.path.insert(0, str(ROOT / "tools"))
from build_backend import TORCH_RANGE, InstalledTorch, find_torch  # noqa: E402


def need_torch() -> InstalledTorch:
    """The torch to compile for; without one there is nothing to build."""
    torch = find_torch()
    if torch is None:
        raise SystemExit(
            "gpushare is compiled for the torch that it will run with, and the environment of "
            f"{sys.executable} has none. Install torch there first, then gpushare again."
        )
    return torch


def find_tool(name: str) -> str:
    """A program beside the running Python (a virtual environment), or else on PATH."""
    beside = Path(sys.executable).parent / name
    path = str(beside) if beside.exists() else shutil.which(name)
    if path is None:
        raise SystemExit(f"{name} is needed to build gpushare: pip install {name}")
    return path


def check_compiler() -> None:
    """Fails in one line where there is no C++ compiler; CMake's message is a page long."""
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise SystemExit(
            f"a C++20 compiler is needed to build gpushare, and there is no {compiler}: "
            "apt-get install g++ (12 or later), or name yours with CXX=..."
        )


def run(command: list[str], torch: InstalledTorch, *, is_verbose: bool) -> None:
    """Runs one step; its output is shown if wanted, or if it fails.

    CMake imports torch for its folders. Where this process could not, PYTHONPATH is how pip hides
    the environment that has it.
    """
    result = subprocess.run(
        command,
        env=os.environ | ({} if torch.is_importable else {"PYTHONPATH": torch.folder}),
        stdout=None if is_verbose else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if result.returncode != 0:
        if result.stdout:
            sys.stdout.write(result.stdout.decode(errors="replace"))
        raise SystemExit(f"failed ({result.returncode}): {shlex.join(command)}")


class CMakeBuild(build_ext):
    """The build_ext step of setuptools, by CMake."""

    def get_outputs(self) -> list[str]:
        """What the step leaves in the wheel's folder."""
        return [
            *super().get_outputs(),
            str(Path(self.build_lib) / "gpushare" / "bin" / "gpushared"),
            str(Path(self.build_lib) / "gpushare" / "_built.py"),
        ]

    def run(self) -> None:
        """Configures if necessary, builds, installs."""
        torch = need_torch()
        check_compiler()
        is_inplace = bool(self.inplace) or self.editable_mode
        target = ROOT / "python" if is_inplace else Path(self.build_lib).resolve()
        cmake = find_tool("cmake")
        is_verbose = self.verbose > 0 or "CI" in os.environ
        self.configure(cmake, torch, is_verbose=is_verbose)
        # Progress is worth seeing: the first build takes a minute or two.
        run([cmake, "--build", str(BUILD), *self.jobs()], torch, is_verbose=True)
        run([cmake, "--install", str(BUILD), "--prefix", str(target)], torch, is_verbose=False)

    def configure(self, cmake: str, torch: InstalledTorch, *, is_verbose: bool) -> None:
        """Runs CMake when its command line changed; for changed files the build itself does."""
        arguments = [
            "-G",
            "Ninja",
            f"-DCMAKE_BUILD_TYPE={'Debug' if self.debug else 'Release'}",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DCMAKE_MAKE_PROGRAM={find_tool('ninja')}",
            *shlex.split(os.environ.get("CMAKE_ARGS", "")),
        ]
        stamp = BUILD / "configured-with"
        wanted = "\n".join(
            [torch.version, torch.folder, cmake, os.environ.get("CXX", ""), *arguments]
        )
        if stamp.exists() and stamp.read_text() == wanted:
            return
        # CMake keeps the torch and the Python that it found first; a change needs a new start.
        (BUILD / "CMakeCache.txt").unlink(missing_ok=True)
        run([cmake, "-S", str(ROOT), "-B", str(BUILD), *arguments], torch, is_verbose=is_verbose)
        stamp.write_text(wanted)

    @staticmethod
    def jobs() -> list[str]:
        """As many compilers as there are cores, unless the environment says otherwise."""
        if "CMAKE_BUILD_PARALLEL_LEVEL" in os.environ:
            return []
        return ["-j", str(len(os.sched_getaffinity(0)))]


def describe() -> dict[str, Any]:
    """Version and dependencies: sources work with a range of torch, a build with one minor."""
    public: dict[str, str] = {}
    exec((ROOT / "python" / "gpushare" / "version.py").read_text(), public)
    torch = None if "sdist" in sys.argv else find_torch()
    return {
        "version": public["__version__"] + (f"+{torch.label}" if torch else ""),
        "install_requires": [
            torch.requirement if torch else TORCH_RANGE,
            "typer>=0.12",
            "rich>=13",
            "tomli>=2; python_version < '3.11'",
        ],
    }


setup(
    ext_modules=[Extension("gpushare._C", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
    data_files=[("share/man/man1", ["docs/man/gpushare.1"])],
    **describe(),
)
