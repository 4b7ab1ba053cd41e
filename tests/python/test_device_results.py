"""What the device suite makes of its parts: counts, files, goals. No device is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.device import goals, outcomes, results, run
from benchmarks.device.outcomes import Part
from benchmarks.device.runner import Runner
from benchmarks.processes import ROOT

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


def _lines(*found: dict[str, Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in found)


def test_counts_come_from_the_log_of_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    text = _lines(
        {"test": "a::good", "state": "begun"},
        {"test": "a::good", "state": "passed"},
        {"test": "a::bad", "state": "begun"},
        {"test": "a::bad", "state": "failed", "reason": "no", "text": "why\nno"},
        {"test": "a::late", "state": "passed"},
        {"test": "a::late", "state": "failed", "reason": "at its end", "text": ""},
        {"test": "a::early", "state": "failed", "reason": "at its start", "text": ""},
        {"test": "a::early", "state": "passed"},
        {"test": "a::shares", "state": "skipped", "reason": "of two lines\nno lanes"},
        {"test": "a::under_way", "state": "begun"},
    )
    path.write_text(text + '{"test": "a::cut')
    part = Part(name="tests", command=[], exit_status=0)
    outcomes.read_outcomes(path, part)
    assert part.passed == 1
    assert part.skipped == ["a::shares: no lanes"]
    assert part.failed[0].startswith("not all results can be read: JSONDecodeError: ")
    assert part.failed[1:] == [
        "a::bad: no",
        "a::late: at its end",
        "a::early: at its start",
        "a::under_way: it had begun, and has not ended",
    ]
    assert part.texts["a::bad"] == "why\nno"
    assert not part.is_good


@pytest.mark.parametrize("text", ["", None, "[]\n", '{"state": "passed"}\n'])
def test_no_outcomes_are_no_success(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    if text is not None:
        path.write_text(text)
    part = Part(name="tests", command=[], exit_status=0)
    outcomes.read_outcomes(path, part)
    assert not part.is_good


@pytest.mark.parametrize(("may_all_skip", "failed"), [(True, []), (False, ["no test ran"])])
def test_only_some_parts_may_skip_all_their_tests(
    may_all_skip: bool, failed: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "found.jsonl"
    path.write_text(_lines({"test": "a::mps", "state": "skipped", "reason": "there is no MPS"}))
    part = Part(name="tests", command=[], exit_status=0)
    outcomes.read_outcomes(path, part, may_all_skip=may_all_skip)
    assert part.failed == failed
    assert part.is_good == may_all_skip
    assert part.skipped == ["a::mps: there is no MPS"]


def test_a_part_without_any_test_has_failed_even_if_all_may_be_skipped(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_text("")
    part = Part(name="tests", command=[], exit_status=0)
    outcomes.read_outcomes(path, part, may_all_skip=True)
    assert part.failed == ["no test ran"]
    assert not part.is_good


@pytest.mark.parametrize(
    ("values", "status", "said"),
    [("[]", 2, "Empty parameter set in 'test_one'"), ("[1]", 0, "1 passed")],
)
def test_an_empty_list_of_parameters_is_an_error_of_the_collection(
    values: str, status: int, said: str, tmp_path: Path
) -> None:
    test = tmp_path / "test_some.py"
    decorator = f"@pytest.mark.parametrize('one', {values})"
    test.write_text(f"import pytest\n{decorator}\ndef test_one(one): pass\n")
    config = str(ROOT / "pyproject.toml")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", config, "-p", "no:cacheprovider", str(test)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert said in ended.stdout


def test_counts_come_from_junit(tmp_path: Path) -> None:
    part = Part(name="C++ tests", command=[], exit_status=1)
    (tmp_path / "found.xml").write_text(JUNIT)
    outcomes.read_junit(tmp_path / "found.xml", part)
    assert part.passed == 1
    assert part.failed == ["Vmm.Frees", "Vmm.Errs"]
    assert part.skipped == ["Vmm.Shares: no lanes"]
    assert not part.is_good


@pytest.mark.parametrize("text", ["", "<testsuites/>", None])
def test_no_tests_are_no_success(text: str | None, tmp_path: Path) -> None:
    part = Part(name="GPU tests", command=[], exit_status=0)
    if text is not None:
        (tmp_path / "found.xml").write_text(text)
    outcomes.read_junit(tmp_path / "found.xml", part)
    assert not part.is_good


def test_both_files_say_what_failed_and_what_was_measured(tmp_path: Path) -> None:
    report = {
        "name": "alone",
        "figures": {"mlp_over_stock": 1.01},
        "goals": {"mlp_over_stock": {"goal": "<= 1.003", "verdict": "MISSED"}},
        "notes": ["as seen"],
    }
    failed = Part(name="tests", command=["pytest"], exit_status=1, failed=["a.b"], skipped=["c: d"])
    failed.texts = {"a.b": "E   no\n"}
    failed.left_behind = ["sleep (12)"]
    parts = [
        Part(name="build", command=["cmake"], exit_status=0, seconds=3.0),
        failed,
        Part(name="benchmark alone", command=["python"], exit_status=0, reports=[report]),
        Part(name="benchmark vmm", command=["python"], reason="out of time"),
        Part(name="benchmark pairs", command=["python"], has_begun=True),
    ]
    results.write(tmp_path, "suite out", {"device": "none"}, parts, ["as seen from afar"])
    text = (tmp_path / "results.md").read_text()
    assert "**Not all good.**" in text
    assert "`suite out`\n\n- device: none\n\n**Note:** as seen from afar\n" in text
    assert "| build | good | 0 | 0 | 0 | 3 |" in text
    assert "| tests | FAILED (1) | 0 | 1 | 1 | 0 |" in text
    assert "| benchmark vmm | NOT RUN: out of time |" in text
    assert "| benchmark pairs | LOST: the suite ended while it ran |" in text
    assert "- tests: a.b" in text
    assert "- tests: c: d" in text
    assert "## Ended after their part\n\n- tests: sleep (12)\n" in text
    assert "## tests: a.b\n\n```\nE   no\n```\n" in text
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
        ({"reports": [3], "failures": []}, "no report was written: "),
        ({"reports": [{"name": "vmm"}], "failures": []}, "no report was written: "),
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
    outcomes.read_reports(path, part)
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


def test_out_of_time_nothing_is_started(tmp_path: Path) -> None:
    part = Runner(tmp_path, "suite", 0.0).run("late", ["touch", str(tmp_path / "here")], 60)
    assert part.exit_status is None
    assert part.outcome == "NOT RUN: out of time"
    assert not (tmp_path / "here").exists()
    assert "| late | NOT RUN: out of time |" in (tmp_path / "results.md").read_text()


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
