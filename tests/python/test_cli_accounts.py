"""``gpushare history``, ``report`` and ``usage``: their formats, and what they refuse."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

from gpushare._accounts.columns import JOB_COLUMNS, USAGE_COLUMNS
from gpushare.cli._screen.colours import WARNING
from gpushare.cli.history import COLUMNS
from tests.python.command_line import gpushare
from tests.python.journals import SECOND, line, write


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    return tmp_path / "gpushare" / "accounts"


def _write_two(folder: Path) -> None:
    write(
        folder,
        line(uid=os.geteuid(), name="gpt\x1b[2J"),
        line(job=2, id="feedfeedfeed", uid=64_001, group="", name="vit", wait_status=9,
             end="died", end_ns=1_800_000_200 * SECOND, held_ns=10 * SECOND),
    )  # fmt: skip


def test_the_tables_for_people(folder: Path) -> None:
    _write_two(folder)
    ended = gpushare("history", "--since", "all", socket="none")
    head, first, second = ended.stdout.splitlines()
    assert head.split()[:4] == ["ID", "USER", "NAME", "GROUP"]
    assert "gpt?[2J" in first
    assert (
        "2027-01-15 08:01:40  ended, exit code 0  1 min 40 s  40.0 s  50.0 s         200" in first
    )
    assert second.startswith("feedfeedfeed  64001")
    assert "killed by SIGKILL" in second
    ended = gpushare("usage", "--by", "group", "--since", "all", socket="none")
    assert [row.split()[:2] for row in ended.stdout.splitlines()[1:2]] == [["sweep", "1"]]
    assert "80%" in ended.stdout.splitlines()[1]


def test_the_ranks_of_a_program_have_one_row_of_the_table(folder: Path) -> None:
    rank = {"gang": "ranks-1", "ranks": 2, "name": "gpt"}
    write(
        folder,
        line(**rank, iterations=100),
        line(**rank | {"job": 2, "id": "feedfeedfeed", "device": "cpu:1", "iterations": 90,
                       "end": "died", "wait_status": 9}),
        line(job=3, id="aaaaaaaaaaaa", gang="by name", name="alone"),
    )  # fmt: skip
    table = gpushare("history", "--since", "all", socket="none").stdout.splitlines()
    (program,) = [row for row in table if "gpt" in row]
    assert "gpt (2 ranks)" in program
    assert "killed by SIGKILL" in program
    assert "  90  " in program
    assert any("  alone  " in row for row in table)
    words = ("--since", "all", "--format", "json")
    ranks = json.loads(gpushare("history", *words, socket="none").stdout)
    assert sorted(row["gang"] for row in ranks) == ["by name", "ranks-1", "ranks-1"]


def test_csv_and_json_have_all_columns(folder: Path) -> None:
    _write_two(folder)
    ended = gpushare("history", "--since", "all", "--format", "csv", socket="none")
    rows = list(csv.DictReader(io.StringIO(ended.stdout)))
    assert [row["id"] for row in rows] == ["0123456789ab", "feedfeedfeed"]
    assert list(rows[0]) == list(JOB_COLUMNS)
    assert (rows[1]["exit_code"], rows[1]["signal"]) == ("", "SIGKILL")
    words = ("--me", "--since", "all", "--format", "json")
    (mine,) = json.loads(gpushare("history", *words, socket="none").stdout)
    assert mine["held_seconds"] == 40
    words = ("--by", "day", "--since", "all", "--format", "csv")
    ended = gpushare("usage", *words, socket="none")
    (row,) = csv.DictReader(io.StringIO(ended.stdout))
    assert list(row) == ["day", *USAGE_COLUMNS]
    assert (row["day"], row["jobs"], row["held_seconds"]) == ("2027-01-15", "2", "50.0")


def test_a_report_is_of_the_newest_that_is_meant(folder: Path) -> None:
    _write_two(folder)
    ended = gpushare("report", "feed", socket="none")
    assert "killed by SIGKILL" in ended.stdout
    assert "python train.py --secret" in ended.stdout
    write(folder, line(job=9, id="aaaaaaaaaaaa", end_ns=SECOND), line())
    ended = gpushare("report", "gpt", socket="none")
    assert ended.stdout.split()[1] == "0123456789ab", "it ended last"
    assert "earlier jobs that 'gpt' can mean: 1." in ended.stdout
    ended = gpushare("report", "gpt", "--format", "json", socket="none")
    assert [job["id"] for job in json.loads(ended.stdout)] == ["0123456789ab"]
    ended = gpushare("report", "nobody\x1b", socket="none")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "no job in the accounts has the id, number or name 'nobody?'" in ended.stderr


def test_a_word_that_is_no_utf_8_means_no_job(folder: Path) -> None:
    _write_two(folder)
    ended = gpushare("report", "\udcff", socket="none")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert "no job in the accounts has the id, number or name '?'" in ended.stderr
    ended = gpushare("history", "--since", "all", "--group", "\udcff", socket="none")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "no such job has ended" in ended.stderr


def test_without_jobs_the_folders_are_named(folder: Path) -> None:
    for command in ("history", "usage"):
        ended = gpushare(command, socket="none")
        assert ended.returncode == 0
        assert ended.stdout == "", "heads of a table without rows say nothing"
        assert "no such job has ended (--since 7d)" in ended.stderr
        assert str(folder) in ended.stderr


def test_a_peak_that_nobody_knows_is_no_size(folder: Path) -> None:
    write(folder, line(name="gpt", peak_bytes=0, spilled_bytes=1 << 20))
    assert gpushare("history", "--since", "all", socket="none").stdout.split()[-3:-1] == [
        "-",
        "1.0",
    ]
    told = gpushare("report", "gpt", socket="none").stdout
    assert told.splitlines()[-1].split() == ["peak", "memory", "not", "known"]


def test_a_job_that_failed_stands_out() -> None:
    (how,) = (column for column, _ in COLUMNS if column.head == "HOW")
    texts = ("ended", "ended, exit code 0", "ended, exit code 1", "killed by SIGKILL", "lost")
    assert [how.style(text) for text in texts] == ["", "", WARNING, WARNING, WARNING]


def test_an_archive_keeps_what_journals_no_longer_have(folder: Path, tmp_path: Path) -> None:
    _write_two(folder)
    words = ("--archive", str(tmp_path / "a.db"), "--since", "all", "--format", "json")
    assert len(json.loads(gpushare("history", *words, socket="none").stdout)) == 2
    write(folder, line(job=3, id="abcdefabcdef"))
    assert len(json.loads(gpushare("history", *words, socket="none").stdout)) == 3
    (tmp_path / "a.db").write_bytes(b"x" * 5000)
    ended = gpushare("history", *words, socket="none")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)


@pytest.mark.parametrize(("words", "said"), [
    (("history", "--since", "soon"), "a span like 30min"),
    (("history", "--me", "--user", "root"), "give one of them"),
    (("history", "--user", "no such one"), "no such user"),
    (("usage", "--by", "month"), "'--by': 'month' is not one of 'user', 'group', 'day'"),
])  # fmt: skip
def test_what_means_nothing_is_refused(words: tuple[str, ...], said: str, folder: Path) -> None:
    ended = gpushare(*words, socket="none")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert said in ended.stderr
