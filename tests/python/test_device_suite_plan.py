"""What the device suite runs, in which order and with which settings; nothing of it is run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.device import build, host_memory, pytest_parts, run
from benchmarks.device.outcomes import Part
from benchmarks.device.suite import Suite
from benchmarks.processes import ROOT, job_environment

GOOD = {"can_reach": True, "why": "", "touched_gib": 40}


class Recorder:
    """Has a runner's methods, and notes what it was to run."""

    def __init__(
        self, facts: dict[str, Any], failing: Sequence[str] = (), *, skips_tests: bool = False
    ) -> None:
        self.parts: list[Part] = []
        self.notes: list[str] = []
        self.machine: dict[str, Any] = {}
        self.limits: dict[str, float] = {}
        self._facts = facts
        self._failing = failing
        self._skips_tests = skips_tests

    def note(self, text: str) -> None:
        self.notes.append(text)

    def add(self, part: Part) -> Part:
        self.parts.append(part)
        return part

    def run(
        self,
        name: str,
        command: Sequence[str],
        seconds: float,
        *,
        missing: str = "",
        env: Mapping[str, str] | None = None,
        read: Callable[[Part], None] | None = None,
    ) -> Part:
        part = self.add(Part(name=name, command=list(command), environment=dict(env or {})))
        self.limits[name] = seconds
        if missing:
            part.reason = missing
            return part
        part.exit_status = 1 if name in self._failing else 0
        if name in ("machine", "memory", "host chunks"):
            if part.exit_status == 0:
                Path(command[-1]).write_text(json.dumps(self._facts))
            assert read is not None
            read(part)
        elif self._skips_tests and pytest_parts.OUTCOMES_VARIABLE in part.environment:
            skipped = {"test": "a::one", "state": "skipped", "reason": "not here"}
            path = Path(part.environment[pytest_parts.OUTCOMES_VARIABLE])
            path.write_text(json.dumps(skipped) + "\n")
            assert read is not None
            read(part)
        return part

    @property
    def is_good(self) -> bool:
        return all(part.is_good for part in self.parts)

    @property
    def files(self) -> list[tuple[str, str]]:
        """Of tests/gpu, with whether memory stays reachable."""
        return [
            (part.command[-1], part.environment["GPUSHARE_REACHABLE"])
            for part in self.parts
            if part.command[-1].startswith("tests/gpu/") and part.name != "C++ tests"
        ]


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEVICE_SUITE_FAKE", "GPUSHARE_HOST_BUDGET"):
        monkeypatch.delenv(name, raising=False)
    pack = tmp_path / "pack"
    (pack / "googletest").mkdir(parents=True)
    monkeypatch.setenv("DEVICE_SUITE_PACK", str(pack))
    monkeypatch.setattr(build, "copy_package", lambda: None)


def _run(tmp_path: Path, runner: Recorder, *kinds: str) -> Recorder:
    Suite(runner, tmp_path / "work").run(kinds)  # type: ignore[arg-type]
    return runner


def _file(name: str, reachable: str) -> tuple[str, str]:
    return f"tests/gpu/test_{name}.py", reachable


def test_each_file_of_tests_is_a_part(tmp_path: Path) -> None:
    files = sorted(path.name for path in (ROOT / "tests" / "gpu").glob("test_*.py"))
    runner = _run(tmp_path, Recorder(GOOD), "tests")
    ran = {part.command[-1] for part in runner.parts if part.command[-1].startswith("tests/gpu/")}
    assert sorted(Path(path).name for path in ran) == files


def test_some_files_run_with_memory_always_reachable_too_and_mps_is_last(tmp_path: Path) -> None:
    runner = _run(tmp_path, Recorder(GOOD), "tests")
    assert runner.files[:2] == [_file("moving", "auto"), _file("two_jobs", "auto")]
    also = [_file("moving", "on"), _file("two_jobs", "on")]
    assert runner.files[-3:] == [*also, _file("mps", "auto")]
    assert len(runner.files) == len(pytest_parts.FILES) + 2
    assert runner.notes == []


def test_only_some_may_skip_all_their_tests_on_a_gpu(tmp_path: Path) -> None:
    runner = _run(tmp_path, Recorder(GOOD, skips_tests=True), "tests")
    parts = [part for part in runner.parts if part.skipped]
    assert len(parts) == len(pytest_parts.FILES) + len(pytest_parts.ALSO_REACHABLE) + 1
    assert [part.name for part in parts if part.is_good] == [
        "tests/gpu/test_devices.py, reachable=auto",
        "tests/gpu/test_mps.py, reachable=auto",
    ]
    assert all(part.failed == ["no test ran"] for part in parts if not part.is_good)


def test_on_the_fake_device_each_part_may_skip_all_its_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEVICE_SUITE_FAKE", "1")
    runner = _run(tmp_path, Recorder(GOOD, skips_tests=True), "tests")
    assert [part for part in runner.parts if part.skipped]
    assert runner.is_good


REFUSED = {**GOOD, "can_reach": False, "why": "cuMemCreate: CUDA_ERROR_NOT_PERMITTED (800)"}


@pytest.mark.parametrize(
    ("facts", "failing", "why"),
    [(REFUSED, (), REFUSED["why"]), (GOOD, ("host chunks",), "FAILED (1)")],
)
def test_where_host_chunks_fail_all_goes_on_without_them_and_says_so(
    facts: dict[str, Any], failing: Sequence[str], why: str, tmp_path: Path
) -> None:
    runner = _run(tmp_path, Recorder(facts, failing), "tests", "benchmarks")
    assert runner.files == [_file(name, "off") for name in pytest_parts.FILES]
    benchmarks = [part for part in runner.parts if part.name.startswith("benchmark ")]
    assert {part.environment["GPUSHARE_REACHABLE"] for part in benchmarks} == {"off"}
    (note,) = runner.notes
    assert f"({why})" in note
    assert "GPUSHARE_REACHABLE=off" in note


def test_the_host_tier_is_large_where_the_memory_is(tmp_path: Path) -> None:
    runner = _run(tmp_path, Recorder(GOOD), "benchmarks")
    assert runner.parts[-1].environment["GPUSHARE_HOST_BUDGET"] == "48GiB"


def test_less_memory_is_said(tmp_path: Path) -> None:
    runner = _run(tmp_path, Recorder({**GOOD, "touched_gib": 12}), "benchmarks")
    assert "GPUSHARE_HOST_BUDGET" not in runner.parts[-1].environment
    (note,) = runner.notes
    assert note.startswith("12 GiB of memory could be written to, of 40: ")


def test_a_size_of_the_host_tier_that_is_given_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUSHARE_HOST_BUDGET", "4GiB")
    runner = _run(tmp_path, Recorder(GOOD), "benchmarks")
    assert "memory" not in [part.name for part in runner.parts]
    assert "GPUSHARE_HOST_BUDGET" not in runner.parts[-1].environment


@pytest.mark.parametrize("kinds", [("tests",), ("benchmarks",), ("tests", "benchmarks")])
def test_only_the_kinds_that_are_asked_for_run(kinds: tuple[str, ...], tmp_path: Path) -> None:
    runner = _run(tmp_path, Recorder(GOOD), *kinds)
    assert bool(runner.files) == ("tests" in kinds)
    names = [part.name for part in runner.parts if part.name.startswith("benchmark ")]
    assert names == [f"benchmark {name}" for name in run.NAMES if "benchmarks" in kinds]
    assert runner.is_good


@pytest.mark.parametrize(
    ("broken", "cpp_status", "gpu_status"),
    [("configure", None, None), ("build", 0, None), ("build C++ tests", None, 0)],
)
def test_what_was_not_built_is_not_run_and_all_else_is(
    broken: str, cpp_status: int | None, gpu_status: int | None, tmp_path: Path
) -> None:
    runner = _run(tmp_path, Recorder(GOOD, [broken]), "tests", "benchmarks")
    found = {part.name: part.exit_status for part in runner.parts}
    assert found["C++ tests"] == cpp_status
    assert found["tests/gpu/test_moving.py, reachable=auto"] == gpu_status
    assert found["benchmark alone"] == gpu_status
    assert found["benchmark vmm"] == 0
    assert found["host chunks"] == 0
    assert not runner.is_good


def test_a_machine_without_a_device_is_no_success(tmp_path: Path) -> None:
    runner = _run(tmp_path, Recorder(GOOD, ["machine"]), "tests")
    assert not runner.is_good
    assert "DEVICE_SUITE_DEVICE" not in runner.parts[-1].environment


def test_a_part_that_hangs_leaves_time_for_others(tmp_path: Path) -> None:
    limits = _run(tmp_path, Recorder(GOOD), "tests", "benchmarks").limits
    # Calls of at most ten minutes: no part has more than half of one.
    assert max(limits.values()) <= 300
    for name in pytest_parts.FILES:
        assert limits[f"tests/gpu/test_{name}.py, reachable=auto"] > pytest_parts.TEST_SECONDS


@pytest.mark.parametrize(("available_gib", "touched"), [(0.0, 0), (2.6, 1), (100.0, 3)])
def test_memory_is_written_to_as_far_as_there_is_some(
    available_gib: float, touched: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def available(key: str) -> float:
        assert key == "MemAvailable"
        return available_gib - len(written)

    monkeypatch.setattr(host_memory, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(host_memory, "_meminfo_gib", available)
    # The test takes no memory: what is only mapped costs none.
    monkeypatch.setattr(host_memory, "_write_to", lambda memory: written.append(len(memory)))
    assert host_memory.touch(3) == touched
    assert written == [host_memory.GIB] * touched


def test_the_probe_of_host_chunks_comes_as_far_as_the_driver(tmp_path: Path) -> None:
    # An empty file in the place of a driver: what a driver answers needs a device.
    (tmp_path / "libcuda.so.1").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.device.host_chunks", str(tmp_path / "found.json")],
        env=job_environment({"LD_LIBRARY_PATH": str(tmp_path)}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "libcuda.so.1: file too short" in done.stderr
