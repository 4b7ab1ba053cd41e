"""What the device suite makes of its parts: counts, files, goals. No device is needed."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.device import goals, results, run
from benchmarks.device.suite import Part, Suite

JUNIT = """<?xml version="1.0"?>
<testsuites><testsuite>
  <testcase classname="Vmm" name="Backs"/>
  <testcase classname="Vmm" name="Frees"><failure message="no"/></testcase>
  <testcase classname="Vmm" name="Errs"><error message="no"/></testcase>
  <testcase classname="Vmm" name="Shares"><skipped message="a_test.cpp:12&#10;no lanes"/></testcase>
</testsuite></testsuites>
"""


@pytest.fixture(autouse=True)
def _no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEVICE_SUITE_FAKE", raising=False)
    monkeypatch.setattr(results, "_machine", lambda: {"device": "none"})
    monkeypatch.setattr(sys, "argv", ["suite", "out"])


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    monkeypatch.setattr("benchmarks.device.suite.BUILD", tmp_path / "build")
    with contextlib.closing(Suite(tmp_path)) as made:
        yield made


def test_counts_come_from_junit(tmp_path: Path) -> None:
    part = Part(name="C++ tests", command=[], exit_status=1)
    (tmp_path / "found.xml").write_text(JUNIT)
    results.read_junit(tmp_path / "found.xml", part)
    assert part.passed == 1
    assert part.failed == ["Vmm.Frees", "Vmm.Errs"]
    assert part.skipped == ["Vmm.Shares: no lanes"]
    assert not part.is_good


@pytest.mark.parametrize("text", ["", "<testsuites/>", None])
def test_no_tests_are_no_success(text: str | None, tmp_path: Path) -> None:
    part = Part(name="GPU tests", command=[], exit_status=0)
    if text is not None:
        (tmp_path / "found.xml").write_text(text)
    results.read_junit(tmp_path / "found.xml", part)
    assert not part.is_good


def test_both_files_say_what_failed_and_what_was_measured(tmp_path: Path) -> None:
    report = {
        "name": "alone",
        "figures": {"mlp_over_stock": 1.01},
        "goals": {"mlp_over_stock": {"goal": "<= 1.003", "verdict": "MISSED"}},
        "notes": ["as seen"],
    }
    parts = [
        Part(name="build", command=["cmake"], exit_status=0, seconds=3.0),
        Part(name="GPU tests", command=["pytest"], exit_status=1, failed=["a.b"], skipped=["c: d"]),
        Part(name="benchmark alone", command=["python"], exit_status=0, reports=[report]),
        Part(name="benchmark vmm", command=["python"], reason="out of time"),
    ]
    results.write(tmp_path, parts)
    text = (tmp_path / "results.md").read_text()
    assert "**Not all good.**" in text
    assert "| build | good | 0 | 0 | 0 | 3 |" in text
    assert "| GPU tests | FAILED (1) | 0 | 1 | 1 | 0 |" in text
    assert "| benchmark vmm | NOT RUN: out of time |" in text
    assert "- GPU tests: a.b" in text
    assert "- GPU tests: c: d" in text
    assert "| mlp_over_stock | 1.0100 | <= 1.003 | MISSED |" in text
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["is_good"] is False
    assert [part["name"] for part in found["parts"]] == [part.name for part in parts]


FAILURE = {"name": "vmm", "traceback": "Traceback:\n  File x\nRuntimeError: no device\n"}


@pytest.mark.parametrize(
    ("written", "failed"),
    [
        (None, "no report was written: "),
        ("", "no report was written: "),
        ({"reports": [], "failures": []}, "nothing was measured"),
        ({"reports": [], "failures": [FAILURE]}, "RuntimeError: no device"),
    ],
)
def test_a_benchmark_without_a_report_has_failed(
    written: object, failed: str, tmp_path: Path
) -> None:
    path = tmp_path / "vmm.json"
    if written is not None:
        path.write_text(json.dumps(written) if written else "")
    part = Part(name="benchmark vmm", command=[], exit_status=0)
    results.read_reports(path, part)
    assert not part.is_good
    assert part.failed[0].startswith(failed)


def test_a_benchmark_that_throws_is_reported_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def throw(*, quick: bool) -> None:
        raise RuntimeError("the device is gone")

    path = tmp_path / "found.json"
    monkeypatch.setattr("benchmarks.device.bench_vmm.run", throw)
    monkeypatch.setattr(run.machine, "missing", lambda: "")
    monkeypatch.setattr(sys, "argv", ["run", "vmm", "--json", str(path)])
    with pytest.raises(SystemExit) as ended:
        run.main()
    assert ended.value.code == 1
    (failure,) = json.loads(path.read_text())["failures"]
    assert failure["name"] == "vmm"
    assert failure["traceback"].endswith("RuntimeError: the device is gone\n")
    assert "in throw" in failure["traceback"]


def test_what_a_part_wrote_last_is_in_the_report(suite: Suite, tmp_path: Path) -> None:
    suite._start("first", ["sh", "-c", "echo of the first"], 60, True)
    part = suite._start("second", ["sh", "-c", "seq 100; echo why >&2; exit 3"], 60, True)
    assert part.last_lines[-2:] == ["100", "why"]
    assert len(part.last_lines) == 40
    killed = suite._start("killed", ["sh", "-c", "echo so far; kill -9 $$"], 60, True)
    assert killed.last_lines == ["so far"]
    suite._write()
    text = (tmp_path / "results.md").read_text()
    assert "## The end of second\n\n```\n62\n" in text
    assert "\n100\nwhy\n```\n" in text
    assert "of the first" not in text


def test_a_part_that_fails_or_hangs_is_said(suite: Suite) -> None:
    assert suite._start("good", ["true"], 60, True).is_good
    assert suite._start("bad", ["false"], 60, True).exit_status == 1
    hung = suite._start("hung", ["sleep", "60"], 0.1, True)
    assert not hung.is_good
    assert hung.reason.startswith("stopped after")
    unbuilt = suite._start("unbuilt", ["true"], 60, False)
    assert unbuilt.exit_status is None
    assert unbuilt.reason == "what it needs was not built"


def test_out_of_time_nothing_is_started(suite: Suite) -> None:
    suite._deadline = 0.0
    part = suite._start("late", ["true"], 60, True)
    assert part.exit_status is None
    assert part.reason == "out of time"


@pytest.mark.parametrize(
    ("figure", "value", "verdict"),
    [
        (("alone", "mlp_over_stock"), 1.003, "met"),
        (("alone", "mlp_over_stock"), 1.004, "MISSED"),
        (("bandwidth", "both_over_one"), 1.6, "met"),
        (("bandwidth", "both_over_one"), 1.59, "MISSED"),
        (("bandwidth", "both_over_one"), None, "not measured"),
    ],
)
def test_goals(figure: tuple[str, str], value: float | None, verdict: str) -> None:
    goal = goals.of(*figure)
    assert goal is not None
    assert goal.verdict(value) == verdict


def test_on_the_fake_device_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE_SUITE_FAKE", "1")
    goal = goals.of("alone", "mlp_over_stock")
    assert goal is not None
    assert goal.verdict(2.0) == "not judged on the fake device"


@pytest.mark.parametrize("kinds", [["tests"], ["benchmarks"], ["tests", "benchmarks"]])
def test_only_the_kinds_that_are_asked_for_run(
    kinds: list[str], suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(suite, "_build", lambda: True)
    monkeypatch.setattr(suite, "_run_tests", lambda _: seen.append("tests"))
    monkeypatch.setattr(suite, "_run_benchmarks", lambda _: seen.append("benchmarks"))
    assert suite.run(kinds)
    assert seen == kinds
