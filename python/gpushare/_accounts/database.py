"""The SQLite database that commands ask: in memory, or a file that keeps more than the journals do.

The journals are the truth. A database is filled from them each time, and a line that it has already
is taken no second time. So a file may be filled by several commands at once, or be killed half-way,
and has each part of each job once.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gpushare._accounts.columns import JOB_KEY, PART_KEY, STORED, Stored
from gpushare.errors import GpushareError
from gpushare.users import user_name

if TYPE_CHECKING:
    from gpushare._accounts.journal import Values

_WAIT_SECONDS = 10.0
"""How long another command may keep the file locked."""
_APPLICATION = 0x67707561
"""In the file's head: it is one of these, and not some other program's database."""


class ArchiveError(GpushareError):
    """The archive cannot be used; the text says why, and what to do."""


def _define(column: Stored) -> str:
    return f'"{column.name}" {"INTEGER" if column.kind is int else "TEXT"}'


def _merge(column: Stored) -> str:
    name = f'"{column.name}"'
    return name if column.merge == "last" else f"{column.merge}({name}) OVER whole AS {name}"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _columns(version: int) -> list[Stored]:
    """Those of a line of that version."""
    return [column for column in STORED if column.since <= version]


def _make_view(version: int) -> str:
    """What makes jobs of their parts."""
    columns = _columns(version)
    return (
        f"CREATE VIEW jobs AS SELECT {_names(column.name for column in columns)} FROM"
        f" (SELECT {', '.join(map(_merge, columns))},"
        " row_number() OVER (whole ORDER BY end_ns DESC, epoch DESC) AS place FROM parts"
        f" WINDOW whole AS (PARTITION BY {_names(JOB_KEY)})) WHERE place = 1"
    )


MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        f"CREATE TABLE parts ({', '.join(map(_define, _columns(1)))},"
        f" PRIMARY KEY ({_names(PART_KEY)})) WITHOUT ROWID",
        _make_view(1),
    ),
    (
        "ALTER TABLE parts ADD COLUMN gang TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE parts ADD COLUMN ranks INTEGER NOT NULL DEFAULT 0",
        "DROP VIEW jobs",
        _make_view(2),
    ),
)
"""What brings a database of version N to N + 1. Never change one: append the next."""


class Database:
    """Parts of jobs, as coordinators wrote them, and jobs, as the parts make them."""

    def __init__(self, path: str = "") -> None:
        """Opens it, and brings it to the newest version.

        Args:
            path: Of the file, which is made if it is not there; "" for a database in memory.

        Raises:
            ArchiveError: The file cannot be used.
        """
        self._path = path
        with self._saying():
            if path:
                _make_private(Path(path))
            self._connection = sqlite3.connect(
                path or ":memory:", timeout=_WAIT_SECONDS, isolation_level=None
            )
            self._connection.row_factory = sqlite3.Row
            try:
                self._migrate()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Closes the file. Who opens a database closes it, with ``contextlib.closing`` at best."""
        self._connection.close()

    def add(self, rows: Iterable[Values]) -> int:
        """Adds parts, all or none of them, and returns how many were new.

        Raises:
            ArchiveError: The file cannot be written.
        """
        insert = f"INSERT OR IGNORE INTO parts VALUES ({', '.join('?' * len(STORED))})"
        with self._saying(), self._transaction():
            before = self._connection.total_changes
            self._connection.executemany(insert, rows)
            return self._connection.total_changes - before

    def select(self, query: str, values: Iterable[object] = ()) -> list[sqlite3.Row]:
        """Returns the rows of a query. No row has a value that is no UTF-8, so that finds none.

        Raises:
            ArchiveError: The file cannot be read.
        """
        try:
            with self._saying():
                return self._connection.execute(query, tuple(values)).fetchall()
        except UnicodeEncodeError:
            return []

    def _migrate(self) -> None:
        with self._transaction():
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            (application,) = self._connection.execute("PRAGMA application_id").fetchone()
            (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if application != _APPLICATION and tables:
                raise ArchiveError(f"{self._path} is another program's database: name another file")
            if version > len(MIGRATIONS):
                raise ArchiveError(
                    f"{self._path} was written by a later gpushare (version {version} of its "
                    f"tables, and this one knows {len(MIGRATIONS)}): update gpushare, or name "
                    "another file"
                )
            for statement in (each for step in MIGRATIONS[version:] for each in step):
                self._connection.execute(statement)
            if version < len(MIGRATIONS):
                self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has ended it already
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _saying(self) -> Iterator[None]:
        """Says what SQLite or the system refuses in a sentence with the file and a way out."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise ArchiveError(
                f"cannot use the archive {self._path}: {error}. Without --archive the journals are "
                "read alone; a damaged file can be removed, and is then made anew from them"
            ) from error
        except OSError as error:
            raise ArchiveError(f"cannot use the archive {self._path}: {error.strerror}") from error


def _make_private(path: Path) -> None:
    """Makes the file for its owner alone: command lines stand in it."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        kind = os.fstat(file)
    finally:
        os.close(file)
    if not stat.S_ISREG(kind.st_mode):
        raise ArchiveError(f"cannot use the archive {path}: it is no plain file. Name another one")
    if kind.st_uid != os.geteuid():
        raise ArchiveError(
            f"cannot use the archive {path}: it is the file of user {user_name(kind.st_uid)}, who "
            "could read the command lines that are written there. Name a file of your own"
        )
