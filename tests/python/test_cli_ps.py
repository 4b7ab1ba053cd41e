"""``gpushare ps``: its columns, forms, filters and order, and that the document has the same."""

from __future__ import annotations

import csv
import json
import os
import pwd
import re
from pathlib import Path
from typing import Any

import pytest

from gpushare.cli._ps.columns import COLUMNS, DEFAULT, choose, sorted_rows
from gpushare.cli._ps.forms import NOT_KNOWN, Form, parse_form, render
from gpushare.errors import ConfigError
from tests.python.command_line import gpushare, needs_daemon, run_as_job
from tests.python.conftest import ROOT
from tests.python.fake_coordinator import FakeCoordinator, make_job, make_report

ME = pwd.getpwuid(os.getuid()).pw_name


def _jobs() -> list[dict[str, Any]]:
    return [
        make_job(3, 'one, "two"', group="sweep", share=1 / 3, resident_bytes=(1 << 41) + 1),
        make_job(5, "vit" + "x" * 200, uid=os.getuid(), state="waiting", waiting_seconds=0.25),
        make_job(7, "\x1b[2J日本", group="sweep", uid=os.getuid(), memory_limit_bytes=1 << 30),
    ]


def _report() -> dict[str, Any]:
    report = make_report()
    report["devices"][0]["jobs"] = _jobs()
    return report


def _render(columns: str, form: str) -> str:
    return render(_jobs(), choose(columns), parse_form(form))


def test_csv_has_the_words_of_nvidia_smi() -> None:
    columns = "job,group,resident,memory_limit,waiting"
    assert _render(columns, "csv").splitlines() == [
        "job,group,resident [B],memory_limit [B],waiting [s]",
        f"3,sweep,2199023255553 B,{NOT_KNOWN},{NOT_KNOWN}",
        f"5,{NOT_KNOWN},0 B,{NOT_KNOWN},0.25 s",
        f"7,sweep,0 B,1073741824 B,{NOT_KNOWN}",
    ]
    lines = _render(columns, "csv,nounits,noheader").splitlines()
    assert lines[0] == f"3,sweep,2199023255553,{NOT_KNOWN},{NOT_KNOWN}"
    assert lines[2] == f"7,sweep,0,1073741824,{NOT_KNOWN}"


def test_a_name_is_whole_and_adds_neither_column_nor_escape() -> None:
    rows = list(csv.reader(_render("name,job", "csv,noheader").splitlines()))
    assert rows == [['one, "two"', "3"], ["vit" + "x" * 200, "5"], ["?[2J日本", "7"]]


def test_json_has_numbers_and_null() -> None:
    said = json.loads(_render("job,share,resident,memory_limit,user,name", "json"))
    assert said["schema_version"] == 1
    assert said["jobs"][0] == {
        "job": 3,
        "share": 1 / 3,
        "resident": (1 << 41) + 1,
        "memory_limit": None,
        "user": "4000001",
        "name": 'one, "two"',
    }
    assert (said["jobs"][1]["user"], said["jobs"][2]["name"]) == (ME, "\x1b[2J日本")


def test_a_table_counts_wide_characters_twice() -> None:
    rows = [make_job(1, "日本"), make_job(2, "abcdef")]
    lines = render(rows, choose("name,job"), Form()).splitlines()
    assert lines == ["name    job", "日本    1", "abcdef  2"]


@pytest.mark.parametrize("form", ["xml", "csv,nohead", "table,noheader", "json,nounits", ""])
def test_a_wrong_form_is_said(form: str) -> None:
    with pytest.raises(ConfigError, match="use table, json or csv"):
        parse_form(form)


@pytest.mark.parametrize(
    ("order", "numbers"),
    [("job", [3, 5, 7]), ("-job", [7, 5, 3]), ("group", [3, 7, 5]), ("-share", [3, 5, 7])],
)
def test_rows_are_sorted_and_those_without_a_value_are_last(order: str, numbers: list[int]) -> None:
    assert [row["job"] for row in sorted_rows(_jobs(), order)] == numbers


def test_the_document_has_the_columns_and_the_default() -> None:
    text = (ROOT / "docs" / "commands.md").read_text().split("## `gpushare ps`")[1]
    text = text.split("\n## ")[0]
    table = text.split("| column | unit | what it says |")[1]
    rows = re.findall(r"^\| `(\w+)` \|(.*?)\| (.*) \|$", table, re.MULTILINE)
    assert [(name, unit.strip(), said) for name, unit, said in rows] == [
        (each.name, each.unit, each.text) for each in COLUMNS
    ]
    assert f"`{DEFAULT}`" in text
    assert f"`{NOT_KNOWN}`" in text


def test_the_command_filters_and_sorts(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", _report()) as fake:
        ended = gpushare(
            "ps", "--me", "--sort", "-job", "-o", "job,user", "--format", "csv", socket=fake.path
        )
        assert (ended.returncode, ended.stdout) == (0, f"job,user\n7,{ME}\n5,{ME}\n"), ended.stderr
        ended = gpushare(
            "ps", "--group", "sweep", "-o", "job", "--format", "csv,noheader", socket=fake.path
        )
        assert ended.stdout == "3\n7\n"


def test_what_does_not_fit_into_an_answer_is_exit_1(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", _report() | {"jobs_left_out": 9}) as fake:
        ended = gpushare("ps", "-o", "job", "--format", "csv,noheader", socket=fake.path)
    assert (ended.returncode, ended.stdout) == (1, "3\n5\n7\n")
    assert ended.stderr.startswith("gpushare: 9 jobs more do not fit")


@pytest.mark.parametrize("option", [["-o", "job,stat"], ["--sort", "-stat"]])
def test_a_wrong_column_is_exit_2_with_the_nearest(tmp_path: Path, option: list[str]) -> None:
    ended = gpushare("ps", *option, socket=f"{tmp_path}/none")
    assert ended.returncode == 2
    assert ended.stderr == (
        "gpushare: ps: no column is called 'stat'; did you mean state? "
        "All columns: gpushare ps -o help\n"
    )


def test_without_a_coordinator_a_program_gets_no_jobs(tmp_path: Path) -> None:
    ended = gpushare("ps", "--format", "json", socket=f"{tmp_path}/none")
    assert ended.returncode == 3
    assert json.loads(ended.stdout) == {"schema_version": 1, "jobs": []}


JOB = """
import gpushare, subprocess, sys
job = gpushare.register(name="small", group="a")
with job.iteration():
    pass
print(subprocess.run([sys.executable, "-m", "gpushare", "ps", "--me", "--format", "json", "-o",
    "COLUMNS"], capture_output=True, text=True, check=True).stdout)
"""


@needs_daemon
def test_a_real_coordinator_knows_each_column() -> None:
    names = [column.name for column in COLUMNS]
    ended = run_as_job(JOB.replace("COLUMNS", ",".join(names)))
    (job,) = json.loads(ended.stdout)["jobs"]
    assert (job["name"], job["group"], job["user"], job["iterations"]) == ("small", "a", ME, 1)
    unknown = {name for name, value in job.items() if value is None}
    # What a job without limits, a gang or a reason to wait does not have.
    assert unknown <= {
        "gang", "iterations_total", "memory_limit", "share_limit", "deadline", "explain",
        "persistent", "ephemeral", "iteration",
    }  # fmt: skip
