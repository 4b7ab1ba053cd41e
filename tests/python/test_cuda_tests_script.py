"""`tools/test_cuda.sh` where its tests cannot run, and `.ci/run`, which says so at the end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.python.conftest import ROOT

SKIPPED = "SKIPPED: the tests on the fake CUDA device: torch=="
FULL_DISK = """
echo "$@" >"$(dirname "$0")/asked"
printf "Filesystem blocks Used Available\\n/dev/x 9 2 7\\n"
"""


def _program(folder: Path, name: str, text: str) -> None:
    path = folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("GS_", "CI_"))}
    return subprocess.run(
        command, env=env | variables, cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("is_required", [False, True])
def test_a_full_disk_skips_them_or_is_an_error(is_required: bool, tmp_path: Path) -> None:
    _program(tmp_path, "python", "exit 1")  # has no CUDA torch
    _program(tmp_path, "df", FULL_DISK)
    cache = tmp_path / "absent" / "cache"
    ended = _run(
        "tools/test_cuda.sh",
        VENV=str(tmp_path),
        CUDA_VENV=str(cache),
        GS_REQUIRE_CUDA_TESTS=str(int(is_required)),
    )
    reason = f"needs 12 GB of disk, 7 GB are free at {tmp_path}"
    assert (tmp_path / "bin" / "asked").read_text().split()[-1] == str(tmp_path)
    assert reason in (ended.stderr if is_required else ended.stdout)
    assert ended.returncode == int(is_required)
    assert ended.stdout.startswith(SKIPPED) is not is_required
    assert not cache.exists()


MAKE = """
[ "$1" != test-cuda ] || echo "SKIPPED: the tests on it"
echo "made $*"
[ "$1" != "$FAILING" ]
"""


@pytest.fixture
def run_ci(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """run_ci(NAME="value") -> how .ci/run ends where `make` only says what it was to make."""
    _program(tmp_path, "make", MAKE)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        return _run(".ci/run", PATH=path, XDG_CACHE_HOME=str(tmp_path), **variables)

    return run


def test_ci_says_at_the_end_how_long_it_took_and_what_was_skipped(
    run_ci: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    ended = run_ci(FAILING="")
    assert ended.returncode == 0, ended.stderr
    *_, model, ray, all_stages, skipped, passed = ended.stdout.splitlines()
    assert model.split()[:3] == ["fuzzers", "and", "model"]
    assert ray.split()[0] == "Ray"
    assert all_stages.split()[0] == "all"
    assert skipped == "SKIPPED: the tests on it"
    assert passed.startswith("CI: all stages passed")


@pytest.mark.parametrize("failing", ["test", "fuzz", "spin", "test-ray"])
def test_ci_fails_with_a_stage(
    failing: str, run_ci: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for _ in range(2):  # what has failed is not left out the next time
        failed = run_ci(FAILING=failing)
        assert failed.returncode != 0
        assert ("made test-cuda" in failed.stdout) == (failing != "test")
        assert "all stages passed" not in failed.stdout


def test_ci_checks_the_same_cpp_once(
    run_ci: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    first, second, third = run_ci(FAILING=""), run_ci(FAILING=""), run_ci(FAILING="", CI_ALL="1")
    assert "made test-tsan" in first.stdout
    assert "made test-tsan" not in second.stdout
    assert "passed before with the same C++" in second.stdout
    assert "made test-tsan" in third.stdout
    assert "made test-cpp LAYER=wire" in first.stdout
    assert "made test-cpp" in third.stdout
    assert "made test-cpp LAYER=wire" not in third.stdout
