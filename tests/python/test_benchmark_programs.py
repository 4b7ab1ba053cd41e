"""What `benchmarks.run` says on a machine where its C++ programs cannot be built."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import native

NO_PACKAGE = """CMake Error at benchmarks/cpp/CMakeLists.txt:2 (find_package):
  By not providing "Findbenchmark.cmake" in CMAKE_MODULE_PATH this project has
  asked CMake to find a package configuration file provided by "benchmark", but
  CMake did not find one."""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs; what is built is beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(native, "FOLDER", tmp_path / "build")
    return folder


def _fail_with(tools: Path, text: str) -> None:
    program = tools / "cmake"
    program.write_text(f"#!/bin/sh\necho '{text}' >&2\nexit 1\n")
    program.chmod(0o755)


def _said() -> str:
    with pytest.raises(SystemExit) as ended:
        native.build("futex_pingpong")
    return str(ended.value)


def test_a_missing_program_is_named(tools: Path) -> None:
    assert _said().startswith("benchmarks: cmake is not installed; `tools/setup_system.sh test` ")


def test_a_missing_library_is_named(tools: Path) -> None:
    _fail_with(tools, NO_PACKAGE)
    assert _said().startswith("benchmarks: cmake finds no benchmark; `tools/setup_system.sh test` ")


def test_any_other_failure_is_kept_in_a_file(tools: Path, tmp_path: Path) -> None:
    _fail_with(tools, "CMake Error: no such generator")
    log = tmp_path / "build" / "cmake.log"
    assert f"benchmarks: cmake failed, see {log}; " in _said()
    assert "no such generator" in log.read_text()
