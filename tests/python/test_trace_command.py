"""``gpushare trace`` as a command: the files, Ctrl-C, and what is wrong."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.python.command_line import gpushare
from tests.python.conftest import clean_environment
from tests.python.exporter_kit import full_job, report_of
from tests.python.fake_coordinator import FakeCoordinator

NONE = "/nonexistent/sock"


def _report() -> dict:
    report = report_of(full_job())
    report["coordinator"]["uptime_seconds"] = 100.0
    report["devices"][0]["jobs"][0]["lane"] = 0
    return report


def _check(file: Path) -> None:
    trace = json.loads(file.read_text())
    assert "lease" in {event["name"] for event in trace["traceEvents"]}
    assert trace["otherData"]["gaps"] == 0


def test_writes_a_file_and_says_where(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    with FakeCoordinator(tmp_path / "sock", _report()) as fake:
        ended = gpushare("trace", "record", "-o", str(file), "--seconds", "0.1", socket=fake.path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{file}: 1 leases. Open it at https://ui.perfetto.dev\n"
    _check(file)


def test_ctrl_c_keeps_what_was_seen(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    words = [sys.executable, "-m", "gpushare", "trace", "record", "-o", str(file)]
    with FakeCoordinator(tmp_path / "sock", _report()) as fake:
        env = clean_environment(socket=fake.path, config=os.devnull)
        with subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True) as process:
            while len(fake.requests) < 3:  # it has begun to look
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate()
    assert (process.returncode, said) == (0, "gpushare: ended early: Ctrl-C\n")
    _check(file)


def test_a_coordinator_that_ends_ends_the_recording(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    with FakeCoordinator(tmp_path / "sock", _report(), None) as fake:
        ended = gpushare("trace", "record", "-o", str(file), socket=fake.path)
    assert ended.returncode == 0
    assert ended.stderr.startswith("gpushare: ended early: the coordinator at ")
    _check(file)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_file_is_not_touched_without_a_coordinator(is_there: bool, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    if is_there:
        file.write_text("mine")
    ended = gpushare("trace", "record", "-o", str(file), socket=str(tmp_path / "sock"))
    assert (ended.returncode, ended.stdout) == (3, "")
    assert (file.read_text() == "mine") if is_there else not file.exists()


def test_a_folder_that_is_missing_is_said(tmp_path: Path) -> None:
    file = tmp_path / "no" / "trace.json"
    with FakeCoordinator(tmp_path / "sock", _report()) as fake:
        ended = gpushare("trace", "record", "-o", str(file), socket=fake.path)
    assert (ended.returncode, ended.stderr) == (
        1,
        f"gpushare: {file}: No such file or directory\n",
    )


def test_a_coordinator_of_an_earlier_version_is_said(tmp_path: Path) -> None:
    report = _report()
    del report["devices"][0]["jobs"][0]["served_seconds"]
    with FakeCoordinator(tmp_path / "sock", report) as fake:
        ended = gpushare("trace", "record", "-o", str(tmp_path / "t.json"), socket=fake.path)
    (line,) = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert "of an earlier version and does not say 'served_seconds'" in line


def _profile(file: Path, base_ns: int, ts: float) -> Path:
    content = {"traceEvents": [{"ph": "X", "name": "mm", "pid": 7, "tid": 7, "ts": ts, "dur": 1}]}
    file.write_text(json.dumps(content | {"baseTimeNanoseconds": base_ns}))
    return file


def test_merging_puts_all_on_the_clock_of_the_recorded_trace(tmp_path: Path) -> None:
    trace, both = tmp_path / "trace.json", tmp_path / "both.json"
    lease = {"ph": "X", "name": "lease", "pid": 1, "tid": 3, "ts": 500.001, "dur": 9}
    trace.write_text(
        json.dumps({"traceEvents": [lease], "otherData": {"unix_seconds_at_0": 5_000_000.25}})
    )
    first = _profile(tmp_path / "a.json", 0, 5_000_000_250_700.007)
    second = tmp_path / "b.json.gz"
    base_ns = 4_999_999 * 10**9
    second.write_bytes(gzip.compress(_profile(tmp_path / "b.json", base_ns, 5.0004).read_bytes()))
    ended = gpushare(
        "trace", "merge", str(trace), str(first), str(second), "-o", str(both), socket=NONE
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    merged = json.loads(both.read_text())
    assert merged["baseTimeNanoseconds"] == 5_000_000_250_000_000
    times = [(event["name"], event["ts"]) for event in merged["traceEvents"]]
    assert times == [("lease", 500.001), ("mm", 700.007), ("mm", 5.0 - 1_250_000)]
    assert merged["traceEvents"][0]["pid"] > 4_194_304, "no process has this number"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON: "),
        ("\udcb1", "is no JSON: it is no text in UTF-8\n"),
        ("[]", "is no trace: it has no list of traceEvents"),
        ('{"traceEvents": [], "baseTimeNanoseconds": "x"}', "baseTimeNanoseconds is no whole"),
        pytest.param(
            '{"traceEvents": [], "baseTimeNanoseconds": 1' + 400 * "0" + "}",
            "is no whole",
            id="a base of 400 digits",
        ),
        ('{"traceEvents": [1]}', "one of its events is no object"),
        ('{"traceEvents": [{"ts": "x"}]}', "an event has a ts that is no number"),
        ('{"traceEvents": [{"ts": NaN}]}', "an event has a ts that is no number"),
        (
            '{"traceEvents": [{"pid": "x"}], "otherData": {"unix_seconds_at_0": 1.5}}',
            "an event has a pid that is no whole number",
        ),
        (
            '{"traceEvents": [{"pid": 1}], "otherData": {"unix_seconds_at_0": NaN}}',
            "none of these files is of gpushare trace record",
        ),
        pytest.param('{"traceEvents": ' + 100_000 * "[", "is no JSON: ", id="deep"),
        pytest.param(
            "\x1f\udc8b\x08\x00\x00\x00\x00\x00\x00\x03\udcff\udcff", "is no JSON: ", id="bad gzip"
        ),
        ('{"traceEvents": []}', "none of these files is of gpushare trace record: name one of"),
    ],
)
def test_what_cannot_be_merged_is_said(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "profile.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    ended = gpushare("trace", "merge", str(file), "-o", str(tmp_path / "both.json"), socket=NONE)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert not (tmp_path / "both.json").exists()


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    ended = gpushare(
        "trace", "merge", str(tmp_path / "x"), "-o", str(tmp_path / "both.json"), socket=NONE
    )
    assert (ended.returncode, ended.stderr) == (
        1,
        f"gpushare: {tmp_path / 'x'}: No such file or directory\n",
    )
