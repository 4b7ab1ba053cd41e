"""Journals become jobs and sums; what is damaged, foreign or not for this user is left out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from gpushare._accounts import journal
from gpushare._accounts.accounts import GROUPINGS, Accounts, Filter
from gpushare._accounts.columns import JOB_COLUMNS, STORED, USAGE_COLUMNS, Stored
from gpushare._accounts.folders import Journal, find_folders
from tests.python import journals
from tests.python.conftest import ROOT
from tests.python.journals import SECOND, line, write

ALL = Filter()
Opened = Callable[[], Accounts]
OTHER_UID = 1001


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that accounts are looked for in."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("GPUSHARE_CONFIG", os.devnull)
    monkeypatch.setattr("gpushare._accounts.folders.SYSTEM_FOLDER", str(tmp_path / "none"))
    return tmp_path / "gpushare" / "accounts"


@pytest.fixture
def accounts() -> Iterator[Opened]:
    """Reads the accounts, which are closed at the end."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(closing(Accounts()))


def _read(text: str, *, in_full: bool = True, uid: int = 0) -> journal.Lines:
    return journal.Lines(Journal(Path("j"), in_full, text.encode()), uid)


def test_a_line_has_the_fields_that_the_coordinator_writes() -> None:
    source = (ROOT / "csrc/daemon/files/account.cpp").read_text()
    assert set(re.findall(r'\{"(\w+)", ', source)) == {"v", *(column.name for column in STORED)}
    header = (ROOT / "csrc/daemon/files/account.h").read_text()
    assert f"kAccountVersion = {journal.VERSION};" in header


def test_damaged_lines_are_counted_and_the_others_count() -> None:
    cut_off = line(job=2)[:100]
    bad = ["{}\n", "[1]\n", "\xff\n", line(uid="root"), line(job=1 << 70), line(name=None)]
    bad += [line(wait_status=(1 << 63) - 1)]
    lines = _read(line() + cut_off + "\n" + "".join(bad) + line(job=3))
    assert [row[4] for row in lines.rows] == [1, 3]
    assert lines.num_damaged == 1 + len(bad)
    (note,) = lines.notes(Journal(Path("/j"), True, b""))
    assert note == "/j: 8 lines are damaged and left out"


def test_lines_of_a_later_version_are_named() -> None:
    lines = _read(line(v=journal.VERSION + 1, news=1) + line())
    assert (len(lines.rows), lines.num_newer) == (1, 1)
    assert "update this one" in lines.notes(Journal(Path("/j"), True, b""))[0]


def test_a_line_of_an_older_version_lacks_what_came_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "VERSION", 3)
    monkeypatch.setattr(journal, "STORED", (*STORED, Stored("news", int, since=3)))
    lines = _read(line() + line(v=3, news=5) + line(v=3))
    assert [row[-1] for row in lines.rows] == [0, 5]
    assert lines.num_damaged == 1


def test_text_of_others_cannot_steer_the_terminal() -> None:
    (row,) = _read(line(name="a\x1b[2J\nb")).rows
    assert "a?[2J?b" in row


@pytest.mark.parametrize(("uid", "in_full", "sees"), [
    (OTHER_UID, False, True), (1002, False, False), (1002, True, True),
])  # fmt: skip
def test_private_columns_are_for_the_jobs_user_and_the_journals(
    uid: int, in_full: bool, sees: bool
) -> None:
    (row,) = _read(line(), in_full=in_full, uid=uid).rows
    said = dict(zip((column.name for column in STORED), row, strict=True))
    private = {column.name for column in STORED if column.is_private}
    assert private == {"pid", "command", "wait_status"}
    assert all((said[name] is not None) == sees for name in private)
    assert said["name"] == "gpt"


def test_a_job_has_the_figures_that_the_document_defines(folder: Path, accounts: Opened) -> None:
    write(folder, line(wait_status=9, end="died"))
    (job,) = accounts().jobs(ALL)
    assert list(job) == list(JOB_COLUMNS)
    assert (job["how"], job["exit_code"], job["signal"]) == ("died", None, "SIGKILL")
    assert job["wall_seconds"] == 100
    assert (job["held_seconds"], job["waited_seconds"], job["switching_seconds"]) == (40, 50, 1)
    assert job["iterations_per_second"] == 2
    assert job["iterations_per_second_alone"] == 4
    write(folder, line(wait_status=7 << 8))
    (job,) = accounts().jobs(ALL)
    assert (job["exit_code"], job["signal"]) == (7, None)


def test_the_parts_of_a_job_are_one_job(folder: Path, accounts: Opened) -> None:
    """A coordinator was stopped while the job ran, and the next one saw its end."""
    first = line(end="carried on", wait_status=None, end_ns=1_800_000_050 * SECOND, iterations=90)
    second = line(epoch=12, job=7, start_ns=1_800_000_051 * SECOND)
    write(folder, second, first)
    found = accounts()
    (job,) = found.jobs(ALL)
    assert (job["how"], job["job"], job["leases"], job["iterations"]) == ("ended", 7, 16, 200)
    assert (job["held_seconds"], job["waited_seconds"], job["wall_seconds"]) == (80, 100, 100)
    (usage,) = found.usage("user", ALL)
    assert (usage["jobs"], usage["held_seconds"], usage["iterations"]) == (1, 80, 200)


def test_devices_and_hosts_share_a_folder(folder: Path, accounts: Opened) -> None:
    write(folder, line())
    write(folder, line(device="cuda:GPU-1"), device="cuda:GPU-1")
    write(folder, line(host="other"), number=2)
    assert len(accounts().jobs(ALL)) == 3


def test_usage_is_the_sum_of_jobs(folder: Path, accounts: Opened) -> None:
    def one(job: int) -> str:
        return line(
            job=job, id=f"{job:012}", uid=1001 + job % 2, group="ab"[job % 2],
            held_ns=job * SECOND, end_ns=(1_800_000_100 + 86_400 * (job % 3)) * SECOND,
        )  # fmt: skip

    write(folder, *(one(job) for job in range(1, 11)))
    found = accounts()
    jobs = found.jobs(ALL)
    for by in GROUPINGS:
        rows = found.usage(by, ALL)
        assert [list(row) for row in rows] == [[by, *USAGE_COLUMNS]] * len(rows)
        for name in set(USAGE_COLUMNS) - {"jobs", "held_share"}:
            assert sum(row[name] for row in rows) == sum(job[name] for job in jobs), name
        assert sum(row["jobs"] for row in rows) == 10
        assert sum(row["held_share"] for row in rows) == pytest.approx(1)
    assert [row["held_seconds"] for row in found.usage("group", ALL)] == [30, 25]
    assert len(found.usage("day", ALL)) == 3


def test_filters(folder: Path, accounts: Opened) -> None:
    write(folder, line(), line(job=2, id="b" * 12, uid=0, group="", end_ns=1_900_000_000 * SECOND))
    found = accounts()
    assert [job["job"] for job in found.jobs(ALL)] == [1, 2]
    assert [job["job"] for job in found.jobs(Filter(since_unix_seconds=1.85e9))] == [2]
    assert [job["job"] for job in found.jobs(Filter(uid=OTHER_UID))] == [1]
    assert [job["job"] for job in found.jobs(Filter(group=""))] == [2]
    assert [job["job"] for job in found.jobs(Filter(most=1))] == [2]
    assert [job["job"] for job in found.find("0123")] == [1]
    assert [job["job"] for job in found.find("gpt")] == [1, 2]
    assert [job["job"] for job in found.find("2")] == [2]
    assert found.find("012") == []


def test_a_damaged_ending_costs_its_line_alone(folder: Path, accounts: Opened) -> None:
    write(folder, line(), line(job=2, id="b" * 12, wait_status=(1 << 63) - 1))
    assert [job["job"] for job in accounts().jobs(ALL)] == [1]


def test_a_text_that_is_no_utf_8_matches_no_job(folder: Path, accounts: Opened) -> None:
    write(folder, line())
    found = accounts()
    assert found.find("\udcff") == []
    assert found.jobs(Filter(group="\udcff")) == []


def test_what_cannot_be_read_is_said(folder: Path, accounts: Opened) -> None:
    write(folder, line())
    (folder / "cpu@box.000002.jsonl").symlink_to(folder / "cpu@box.000001.jsonl")
    found = accounts()
    assert len(found.jobs(ALL)) == 1
    assert any("cpu@box.000002.jsonl is left out" in note for note in found.notes)


def test_the_folder_of_the_settings_is_looked_at(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[accounts]\nfolder = "/somewhere"\n')
    found = find_folders({"GPUSHARE_CONFIG": str(config), "HOME": "/home/me"})
    assert [str(each) for each in found] == [
        "/var/lib/gpushare-accounts", "/home/me/.local/state/gpushare/accounts", "/somewhere",
    ]  # fmt: skip


# The document.

TEXT = (ROOT / "docs" / "accounts.md").read_text()


def _table(title: str) -> list[list[str]]:
    section = TEXT.split(f"### {title}\n")[1].split("\n### ")[0]
    rows = [row.strip("|").split("|") for row in section.splitlines() if row.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_document_defines_each_column_with_its_unit() -> None:
    rows = _table("Of one job")
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert named == set(JOB_COLUMNS)
    summed = {name for row in _table("Of `usage`") for name in re.findall(r"`(\w+)`", row[0])}
    assert summed == set(USAGE_COLUMNS)
    units = {"_seconds": "s", "_bytes": "B", "_per_second": "1/s", "_second_alone": "1/s"}
    for row in rows + _table("Of `usage`"):
        for name in re.findall(r"`(\w+)`", row[0]):
            for ending in (each for each in units if name.endswith(each)):
                if not (ending == "_seconds" and "per" in name):
                    assert row[1] == units[ending], name


def test_the_document_marks_what_is_private() -> None:
    marked = {row[0].strip("`") for row in _table("Of one job") if "private" in row[2]}
    assert marked == {"pid", "command", "exit_code", "signal"}
    assert journals.LINE["v"] == journal.VERSION
