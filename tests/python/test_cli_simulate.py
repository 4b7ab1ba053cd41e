"""``gpushare simulate``: traces in, a table or JSON out, errors with the line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from gpushare._settings.settings import POLICIES
from gpushare.cli._screen.line import plain
from gpushare.simulate import plots, runs
from gpushare.simulate.table import format_time, table_lines
from tests.python.conftest import clean_environment
from tests.support import forked

HEAD = "name,submit_s,iterations,iteration_ms,persistent_mib,peak_mib\n"
TWO_JOBS = HEAD + "long,0,1000,100,10,20\nshort,1,100,100,10,20\n"


def _simulate(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    words = ["-m", "gpushare", "simulate", *arguments]
    return forked.run(words, clean_environment(), text=stdin, timeout=100)


def _trace(folder: Path, text: str = TWO_JOBS) -> str:
    path = folder / "trace.csv"
    path.write_text(text)
    return str(path)


def test_the_table_compares_policies_to_the_first(tmp_path: Path) -> None:
    ended = _simulate(_trace(tmp_path), "--policy", "fifo,rr")
    assert ended.returncode == 0, ended.stderr
    assert "fifo over this, average" in ended.stdout
    assert "2 of 2" in ended.stdout


def test_policies_that_do_not_fit_stand_in_a_further_table() -> None:
    reports = runs.run(TWO_JOBS, list(POLICIES), {}, jobs=False, leases=False)
    whole = plain(table_lines(reports, None))
    assert whole.splitlines()[0].split() == list(POLICIES)
    narrow = plain(table_lines(reports, 80))
    assert max(map(cell_len, narrow.splitlines())) <= 80
    tables = narrow.split("\n\n")
    assert [name for table in tables for name in table.splitlines()[0].split()] == list(POLICIES)
    assert all(table.count(" of 2") == len(table.splitlines()[0].split()) for table in tables)


def test_json_has_a_report_of_each_policy(tmp_path: Path) -> None:
    ended = _simulate(_trace(tmp_path), "--policy", "fifo,rr", "--json", "--rows", "--switch", "0s")
    assert ended.returncode == 0, ended.stderr
    whole = json.loads(ended.stdout)
    assert whole["schema_version"] == 1
    assert whole["machine"] == {"devices": "1", "capacity": "16GiB", "switch": "0s"}
    fifo, turns = whole["policies"]
    assert (fifo["policy"], turns["policy"]) == ("fifo", "rr")
    assert fifo["completion_seconds"]["worst"] == pytest.approx(109)
    assert fifo["jobs"][1]["finish_seconds"] == pytest.approx(110)
    assert fifo["jobs"][1]["alone_seconds"] == pytest.approx(10)
    assert fifo["slowdown"]["worst"] == pytest.approx(10.9)
    assert fifo["slowdown"]["median"] == pytest.approx(1)
    assert fifo["makespan_seconds"] == pytest.approx(110)
    # The short job need not wait for the long one.
    assert turns["jobs"][1]["finish_seconds"] < 30
    ratio = whole["first_over"]["rr"]["average"]
    assert ratio > 1.3
    averages = [report["completion_seconds"]["average"] for report in whole["policies"]]
    assert ratio == pytest.approx(averages[0] / averages[1])


def test_devices_may_differ_and_processes_may_fail(tmp_path: Path) -> None:
    fates = ("--failure-every", "30s", "--restart", "1s", "--checkpoint", "1s", "--rebind", "any")
    ended = _simulate(
        _trace(tmp_path), "--policy", "fifo", "--speeds", "4,0.5", *fates, "--json", "--rows"
    )
    assert ended.returncode == 0, ended.stderr
    whole = json.loads(ended.stdout)
    (fifo,) = whole["policies"]
    assert whole["machine"]["speeds"] == "4,0.5"
    assert fifo["devices"] == 2
    assert fifo["num_failures"] > 0
    assert fifo["lost_seconds"] > 0
    shown = _simulate(_trace(tmp_path), "--policy", "fifo", "--speeds", "4,0.5", *fates)
    assert "failures" in shown.stdout
    assert "lost by them" in shown.stdout


def test_devices_may_be_of_kinds_and_be_given_in_rounds(tmp_path: Path) -> None:
    (tmp_path / "kinds.csv").write_text(
        "submit_s,duration_s,speeds\n0,100,a:4/b:1\n0,100,a:1/b:4\n"
    )
    options = ("--policy", "maxmin,fair", "--speeds", "a:1,b:1", "--switch", "0s")
    ended = _simulate(str(tmp_path / "kinds.csv"), *options, "--json")
    assert ended.returncode == 0, ended.stderr
    rounds = json.loads(ended.stdout)["policies"][0]
    assert rounds["policy"] == "maxmin"
    with_blanks = ("--policy", "maxmin,fair", "--speeds", "a:1, b:1", "--switch", "0 s")
    again = _simulate(str(tmp_path / "kinds.csv"), *with_blanks, "--json")
    assert json.loads(again.stdout)["policies"] == json.loads(ended.stdout)["policies"]
    assert rounds["completion_seconds"]["worst"] == pytest.approx(25)


def test_as_many_speeds_as_devices(tmp_path: Path) -> None:
    ended = _simulate(_trace(tmp_path), "--devices", "3", "--speeds", "1,2")
    assert ended.returncode != 0
    assert "there are 3 devices and 2 speeds" in ended.stderr


def test_the_ends_of_the_scale_are_there(tmp_path: Path) -> None:
    text = TWO_JOBS + "huge,0,1,1,99,99\n"
    options = ("--policy", "exclusive,srtf", "--switch", "0s", "--capacity", "50MiB")
    ended = _simulate(_trace(tmp_path, text), *options)
    assert ended.returncode == 0, ended.stderr
    lines = [line.split("  ") for line in ended.stdout.splitlines()]
    cells = {line[0].strip(): [each.strip() for each in line[1:] if each.strip()] for line in lines}
    bound, least = cells["least possible over this, average"]
    assert bound < least
    assert least == "1.00x"
    assert "exclusive: times leave out 1 that no device had memory for" in ended.stdout


def test_rows_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    whole = json.loads(_simulate(_trace(tmp_path), "--policy", "fifo", "--json").stdout)
    assert "jobs" not in whole["policies"][0]
    assert "leases" not in whole["policies"][0]


def test_more_devices_take_less_time() -> None:
    def makespan(devices: int) -> float:
        ended = _simulate(
            "-", "--policy", "fifo", "--json", "--devices", str(devices), stdin=TWO_JOBS
        )
        return float(json.loads(ended.stdout)["policies"][0]["makespan_seconds"])

    assert makespan(2) == pytest.approx(100, abs=0.01)
    assert makespan(1) == pytest.approx(110, abs=0.01)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (HEAD + "a,0,1,1,1,1\na,0,x,1,1,1\n", (), "line 3: column 'iterations': 'x'"),
        ("name,colour\n", (), "no column is called 'colour'"),
        (TWO_JOBS, ("--policy", "none"), "no policy is called 'none'"),
        (TWO_JOBS, ("--policy", ","), "names no policy"),
        (TWO_JOBS, ("--capacity", "much"), "capacity=much is not a size"),
        (TWO_JOBS, ("--num-lanes", "99"), "num_lanes is 99"),
        (TWO_JOBS, ("--output", "x.csv"), "TRACE is in this form already"),
        (TWO_JOBS, ("--rows",), "is for --json"),
        (TWO_JOBS, ("--min-quantum", "60"), "min_quantum=60 is not a time such as 100ms"),
        (TWO_JOBS, ("--seed", "3"), "--seed is for --generate"),
        (TWO_JOBS, ("--generate", "salus"), "without TRACE"),
        (TWO_JOBS, ("--generate", "salus", "--policy", "rr"), "without --policy, TRACE"),
    ],
)
def test_what_is_wrong_is_said_once(
    tmp_path: Path, text: str, options: tuple[str, ...], said: str
) -> None:
    ended = _simulate(_trace(tmp_path, text), *options)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_trace_is_needed(tmp_path: Path) -> None:
    assert "--generate" in _simulate().stderr
    ended = _simulate(str(tmp_path / "missing.csv"))
    assert ended.returncode == 2
    assert "missing.csv: No such file or directory. See" in ended.stderr
    ended = _simulate("/dev/zero")  # it has no end
    assert ended.returncode == 2
    assert "/dev/zero: it is longer than 512 MiB; read a part of it. See" in ended.stderr


def test_a_folder_that_is_missing_is_said(tmp_path: Path) -> None:
    ended = _simulate("--generate", "salus", "--output", str(tmp_path / "no" / "made.csv"))
    assert ended.returncode == 2
    assert "made.csv: No such file or directory. See" in ended.stderr


def test_a_generated_trace_can_be_simulated(tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    made = _simulate("--generate", "salus", "--jobs", "20", "--seed", "7", "--output", str(path))
    assert made.returncode == 0, made.stderr
    assert path.read_text().startswith("# Salus")
    whole = json.loads(_simulate(str(path), "--policy", "fifo", "--json").stdout)
    assert whole["policies"][0]["num_finished"] == 20
    again = _simulate("--generate", "salus", "--jobs", "20", "--seed", "7")
    assert again.stdout == path.read_text()


def test_an_unknown_trace_is_not_made() -> None:
    ended = _simulate("--generate", "nobody")
    assert ended.returncode == 2
    assert all(name in ended.stderr for name in ("salus", "philly", "alibaba"))


def test_ctrl_c_ends_a_simulation(tmp_path: Path) -> None:
    # Two jobs of a year each, which look at each other's pages every millisecond: it does not end.
    lines = HEAD + "a,0,300000000,100,10,20\nb,0,300000000,100,10,20\n"
    code = (
        "import sys\n"
        "from gpushare.simulate import runs\n"
        "runs.native()\n"
        "print('ready', flush=True)\n"
        "runs.run(sys.argv[1], ['rr'], {'gap_poll': '1ms'})\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, lines],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors


def test_plots_need_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(Exception, match="pip install matplotlib"):
        plots.check()


def _job_row(name: str, outcome: str, *, arrival: float, finish: float) -> dict[str, Any]:
    return {
        "name": name,
        "outcome": outcome,
        "arrival_seconds": arrival,
        "finish_seconds": finish,
        "alone_seconds": 2.0,
    }


def test_time_is_drawn_in_parts_of_which_each_says_how_much_was_used() -> None:
    spans = [(0.0, 2.0), (1.0, 3.5)]
    assert plots.spread_over(spans, 0.0, 4.0, 4) == pytest.approx([1.0, 2.0, 1.0, 0.5])
    assert plots.spread_over(spans, 0.0, 4.0, 1) == pytest.approx([4.5 / 4])
    assert plots.spread_over([], 3.0, 3.0, 2) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("seconds", "unit"), [(0, "s"), (299, "s"), (300, "min"), (3e4, "h"), (3e5, "days")]
)
def test_a_span_is_drawn_in_a_unit_that_suits_it(seconds: float, unit: str) -> None:
    assert plots.unit_of(seconds) == unit


def test_plots_are_of_what_the_report_says(tmp_path: Path) -> None:
    report: dict[str, Any] = {
        "policy": "rr",
        "devices": 2,
        "jobs": [
            _job_row("late", "finished", arrival=1.0, finish=9.0),
            _job_row("early", "finished", arrival=0.0, finish=4.0),
            _job_row("big", "denied", arrival=0.0, finish=0.0),
        ],
        "leases": [[0, 0, 0.0, 2.0], [1, 1, 1.0, 3.0], [0, 1, 3.0, 4.0]],
    }
    assert plots.completion_times(report) == [4.0, 8.0]
    assert plots.slowdowns(report) == [2.0, 4.0]
    pytest.importorskip("matplotlib")
    idle: dict[str, Any] = {"policy": "fifo", "devices": 2, "jobs": [], "leases": []}
    paths = plots.draw([report, idle], tmp_path / "plots")
    assert {path.name for path in paths} == {
        f"{name}.{form}"
        for name in ("completion", "slowdown", "utilisation", "jobs_rr", "jobs_fifo")
        for form in ("svg", "png")
    }
    assert all(path.stat().st_size > 1000 for path in paths)


def test_ratios_of_nothing_are_nothing() -> None:
    spread = dict.fromkeys(runs.COMPARED, 2.0)
    reports = [
        {"policy": "fifo", "completion_seconds": spread},
        {"policy": "rr", "completion_seconds": None},
    ]
    assert runs.ratios(reports)["rr"]["average"] is None
    assert runs.ratios(reports)["fifo"]["worst"] == 1.0


def test_times_have_units() -> None:
    assert [format_time(seconds) for seconds in (1.25, 90, 7200)] == ["1.25 s", "1.5 min", "2.0 h"]


def test_the_settings_know_the_policies_there_are() -> None:
    assert set(POLICIES) == set(runs.native().policy_names())
