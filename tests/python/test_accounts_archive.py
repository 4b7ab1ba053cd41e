"""The archive of accounts: a file that is filled again and again, or refused in a sentence."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpushare._accounts import database, journal
from gpushare._accounts.accounts import Accounts, Filter
from gpushare._accounts.columns import STORED
from gpushare._accounts.database import ArchiveError, Database
from gpushare._accounts.folders import Journal
from gpushare.cli._accounts.options import open_accounts
from gpushare.cli.dashboard.controls import history as dashboard_history
from tests.python.journals import line, write


def _rows(*lines: str) -> list[journal.Values]:
    return journal.Lines(Journal(Path("j"), True, "".join(lines).encode()), 0).rows


def test_an_archive_takes_each_part_once_and_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    for num_new in (2, 0):
        archive = Database(str(path))
        assert archive.add(_rows(line(), line(job=2))) == num_new
        archive.close()
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(Database(str(path))) as kept:
        assert len(kept.select("SELECT * FROM parts")) == 2


def test_an_older_archive_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.db")
    old = Database(path)
    old.add(_rows(line()))
    old.close()
    step = ("ALTER TABLE parts ADD COLUMN news INTEGER DEFAULT 5",)
    monkeypatch.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, step))
    new = Database(path)
    assert [row["news"] for row in new.select("SELECT news FROM parts")] == [5]
    assert new.select("PRAGMA user_version")[0][0] == len(database.MIGRATIONS)
    new.close()
    monkeypatch.undo()
    with pytest.raises(ArchiveError, match="later gpushare"):
        Database(path)


def test_an_archive_of_the_first_version_knows_no_gangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.db")
    first = [column for column in STORED if column.since == 1]
    with monkeypatch.context() as patch:
        patch.setattr(database, "MIGRATIONS", database.MIGRATIONS[:1])
        patch.setattr(database, "STORED", first)
        old = Database(path)
        old.add([row[: len(first)] for row in _rows(line())])
        old.close()
    with closing(Database(path)) as new:
        new.add(_rows(line(job=2, id="feedfeedfeed", gang="g", ranks=2)))
        jobs = new.select("SELECT job, gang, ranks FROM jobs ORDER BY job")
    assert [tuple(job) for job in jobs] == [(1, "", 0), (2, "g", 2)]


def test_a_step_that_fails_leaves_the_old_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.db")
    Database(path).close()
    step = ("ALTER TABLE parts ADD COLUMN news INTEGER", "ALTER TABLE missing ADD COLUMN x")
    with monkeypatch.context() as patch:
        patch.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, step))
        with pytest.raises(ArchiveError, match="no such table"):
            Database(path)
    with closing(Database(path)) as kept:
        assert "news" not in [row["name"] for row in kept.select("PRAGMA table_info(parts)")]


def test_a_damaged_archive_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(ArchiveError, match="can be removed"):
        Database(str(path))
    with pytest.raises(ArchiveError, match="No such file or directory"):
        Database(str(tmp_path / "none" / "a.db"))


def test_an_ending_that_is_none_is_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier commands took such a line from a damaged journal."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = str(tmp_path / "a.db")
    with closing(Database(path)) as archive:
        archive.add(_rows(line()))
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE parts SET wait_status = ?", [(1 << 63) - 1])
        file.commit()
    with closing(Accounts(path)) as accounts:
        endings = [(job["id"], job["exit_code"], job["signal"]) for job in accounts.jobs(Filter())]
    assert ("0123456789ab", None, None) in endings


def test_what_is_no_plain_file_is_no_archive(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ArchiveError, match="it is no plain file"):
        Database(str(pipe))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_command_lines_are_written_to_no_file_of_another_user(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.touch(0o666)
    os.chown(path, 64_001, -1)
    with pytest.raises(ArchiveError, match="it is the file of user 64001, who could read"):
        Database(str(path))
    assert path.read_bytes() == b""


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(ArchiveError, match="another program's"):
        Database(str(path))
    assert path.read_bytes() == before


def test_a_locked_archive_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "a.db")
    Database(path).close()
    monkeypatch.setattr(database, "_WAIT_SECONDS", 0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ArchiveError, match="locked"):
            Database(path)


class _CountedConnection(sqlite3.Connection):
    """Knows how many of its kind are open."""

    num_open = 0

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        type(self).num_open += 1

    def close(self) -> None:
        super().close()
        type(self).num_open -= 1


def test_each_database_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 warns of one that is not."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("GPUSHARE_CONFIG", os.devnull)
    monkeypatch.setattr("gpushare._accounts.folders.SYSTEM_FOLDER", str(tmp_path / "none"))
    write(tmp_path / "gpushare" / "accounts", line())
    connect = partial(sqlite3.connect, factory=_CountedConnection)
    monkeypatch.setattr(database.sqlite3, "connect", connect)
    with open_accounts("") as accounts:
        assert _CountedConnection.num_open == 1
        assert len(accounts.jobs(Filter())) == 1
    assert _CountedConnection.num_open == 0
    assert len(dashboard_history()["rows"]) == 1
    assert _CountedConnection.num_open == 0
    damaged = tmp_path / "a.db"
    damaged.write_bytes(b"no database at all" * 100)
    with pytest.raises(ArchiveError):
        Database(str(damaged))
    assert _CountedConnection.num_open == 0
    monkeypatch.setattr(Database, "add", lambda _self, _rows: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Accounts()
    assert _CountedConnection.num_open == 0
