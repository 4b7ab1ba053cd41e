"""The device suite loses no results: its runner, on parts that hang, crash and are killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import ROOT

PATIENCE_SECONDS = 60.0


def _start(out: Path, what: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.python.device_rehearsal", str(out), what]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


def _parts(out: Path) -> dict[str, dict[str, Any]]:
    found = json.loads((out / "results.json").read_text())
    assert not found["is_good"]
    return {part["name"]: part for part in found["parts"]}


def _processes_of(out: Path) -> list[int]:
    """Whatever has the folder in its command line; a process that was forked has its parent's."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(out) in path.read_bytes():
                pids.append(int(path.parent.name))
        except OSError:
            continue  # it has just ended
    return pids


def _wait_until(what: str, is_so: Any) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"{what}: not in {PATIENCE_SECONDS:g} s"
        time.sleep(0.02)


def _end(suite: subprocess.Popen[bytes], out: Path) -> None:
    """Whatever a test that failed has left, or a suite that was killed."""
    suite.kill()
    suite.wait()
    for pid in _processes_of(out):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a whole rehearsal."""
    out = tmp_path_factory.mktemp("rehearsal")
    suite = _start(out, "all")
    try:
        assert suite.wait(10 * PATIENCE_SECONDS) == 0
        yield out
    finally:
        _end(suite, out)


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A suite whose second part hangs in its last test."""
    outcomes = tmp_path / "work" / "standing.jsonl"
    suite = _start(tmp_path, "standing")
    try:
        _wait_until(
            "the last test", lambda: outcomes.exists() and "test_hangs" in outcomes.read_text()
        )
        yield suite, tmp_path
    finally:
        _end(suite, tmp_path)


def test_all_other_results_come_back(rehearsed: Path) -> None:
    parts = _parts(rehearsed)
    outcomes = {name: part["outcome"] for name, part in parts.items()}
    assert outcomes == {
        "first": "good",
        "segfaults": "FAILED (SIGSEGV)",
        "killed": "FAILED (SIGKILL)",
        "hangs": "FAILED (SIGKILL) stopped after 1 s",
        "orphans": "good",
        "writes nothing": "FAILED (0)",
        "writes rubbish": "FAILED (0)",
        "fails": "FAILED (3)",
        "tests": "FAILED (1)",
        "killed tests": "FAILED (SIGKILL)",
        "C++ tests": "FAILED (1)",
        "unbuilt": "NOT RUN: what it needs was not built",
        "last": "good",
    }
    # What a part has written before it was ended is read too.
    measured = {part["name"] for part in parts.values() if part["reports"]}
    assert measured == {"first", "hangs", "orphans", "last"}
    for name in ("writes nothing", "writes rubbish"):
        assert parts[name]["failed"][0].startswith("no report was written: "), name
    assert parts["segfaults"]["last_lines"] == ["so far"]
    assert parts["fails"]["last_lines"] == [str(number) for number in range(60, 100)]


def test_all_results_are_in_the_text_too(rehearsed: Path) -> None:
    text = (rehearsed / "results.md").read_text()
    for name, part in _parts(rehearsed).items():
        assert f"| {name} | {part['outcome']} | {part['passed']} | " in text
    assert (
        "\n## last\n\n| figure | value | goal | |\n| --- | --- | --- | --- |\n| figure | 1.5"
        in text
    )
    assert (
        "- killed tests: test_killed tests.py::test_killed: it had begun, and has not ended" in text
    )
    assert "## The end of segfaults\n\n```\nso far\n```\n" in text
    assert "\n98\n99\n```\n" in text


def test_whatever_a_part_leaves_behind_is_ended(rehearsed: Path) -> None:
    parts = _parts(rehearsed)
    assert [name for name, part in parts.items() if part["left_behind"]] == ["hangs", "orphans"]
    assert _processes_of(rehearsed) == []


@pytest.mark.parametrize("name", ["tests", "killed tests"])
def test_a_killed_test_costs_no_other_ones_result(name: str, rehearsed: Path) -> None:
    part = _parts(rehearsed)[name]
    assert part["passed"] == 1
    assert [one.partition("::")[2] for one in part["skipped"]] == [
        "test_skipped: no such thing here"
    ]
    failed = {one.partition("::")[2].partition(":")[0]: one for one in part["failed"]}
    assert set(failed) == {"test_fails", "test_with_a_broken_end", "test_killed"}
    assert "one is not two" in failed["test_fails"]
    assert "the end is broken" in failed["test_with_a_broken_end"]
    (text,) = (text for name, text in part["texts"].items() if name.endswith("test_fails"))
    assert "AssertionError: one is not two" in text


def test_a_cpp_test_that_aborts_costs_no_other_ones_result(rehearsed: Path) -> None:
    part = _parts(rehearsed)["C++ tests"]
    suite = "CudaOnThisMachine/VmmContract/0"
    assert part["passed"] == 1
    assert [one.partition("[")[2] for one in part["skipped"]] == [
        f"{suite}.Skips]: there is no such device"
    ]
    aborted, failed = sorted(one.partition("[")[2] for one in part["failed"])
    assert aborted == f"{suite}.Aborts]: Failed: ended by SIGABRT:"
    assert failed.startswith(f"{suite}.Fails]: AssertionError: Value of: 2")
    assert any("check failed: refused" in text for text in part["texts"].values())


def test_a_killed_suite_loses_the_part_under_way(
    standing: tuple[subprocess.Popen[bytes], Path],
) -> None:
    suite, out = standing
    suite.kill()
    suite.wait()
    parts = _parts(out)
    assert list(parts) == ["first", "standing"]
    assert parts["first"]["reports"][0]["figures"] == {"figure": 1.5}
    assert parts["standing"]["outcome"] == "LOST: the suite ended while it ran"
    # The part's own process ends with the suite. Its orphan has nobody who would end it.
    _wait_until("the end of the part", lambda: len(_processes_of(out)) <= 1)


def test_a_suite_that_is_asked_to_end_reads_the_part_under_way(
    standing: tuple[subprocess.Popen[bytes], Path],
) -> None:
    suite, out = standing
    suite.terminate()
    assert suite.wait(PATIENCE_SECONDS) != 0
    parts = _parts(out)
    assert list(parts) == ["first", "standing"]
    assert "the suite was ended while it ran: ended by SIGTERM" in parts["standing"]["outcome"]
    assert parts["standing"]["passed"] == 2  # the first, and the one that left an orphan
    assert any("test_hangs: it had begun" in one for one in parts["standing"]["failed"])
    assert parts["standing"]["left_behind"]
    assert _processes_of(out) == []
