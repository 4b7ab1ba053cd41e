"""Jobs and sums, as the commands show them."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from dataclasses import dataclass
from typing import Any

from gpushare._accounts.columns import JOB_COLUMNS, USAGE_COLUMNS
from gpushare._accounts.database import Database
from gpushare._accounts.folders import find_folders, read_journals
from gpushare._accounts.journal import Lines
from gpushare.users import user_name

_NS = 1e9
_SECONDS = ("held", "waited", "switching", "busy")
GROUPINGS = ("user", "group", "day")

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Filter:
    """Which jobs are meant."""

    since_unix_seconds: float = 0.0
    """Those that ended at or after this time."""
    uid: int | None = None
    group: str | None = None
    most: int = 0
    """The newest so many; 0 for all."""


class Accounts:
    """All accounts that this user can read, until ``close``."""

    def __init__(self, archive: str = "") -> None:
        """Reads the journals.

        Args:
            archive: A SQLite file that what is new is added to, and that is asked; "" for none.

        Raises:
            ConfigError: A file of settings cannot be read.
            ArchiveError: The archive cannot be used.
        """
        self.folders = find_folders(os.environ)
        journals, self.notes = read_journals(self.folders, os.geteuid())
        self._database = Database(archive)
        try:
            for journal in journals:
                lines = Lines(journal, os.geteuid())
                self.notes += lines.notes(journal)
                self._database.add(lines.rows)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the database. The accounts can then no longer be asked."""
        self._database.close()

    def jobs(self, wanted: Filter) -> list[Row]:
        """Returns jobs with the columns ``JOB_COLUMNS``, the one that ended last at the end."""
        where, values = _where(wanted)
        limit = f" LIMIT {wanted.most}" if wanted.most else ""
        query = f"SELECT * FROM jobs WHERE {where} ORDER BY end_ns DESC, id{limit}"
        return [_job(row) for row in reversed(self._database.select(query, values))]

    def find(self, job: str) -> list[Row]:
        """Returns the jobs that an id's beginning, a number or a name can mean; the last is last.

        Args:
            job: At least four digits of the id, or the number or name that ``status`` showed.
        """
        query = (
            "SELECT * FROM jobs WHERE (length(?) >= 4 AND substr(id, 1, length(?)) = ?)"
            " OR CAST(job AS TEXT) = ? OR name = ? ORDER BY end_ns, id"
        )
        return [_job(row) for row in self._database.select(query, [job] * 5)]

    def usage(self, by: str, wanted: Filter) -> list[Row]:
        """Returns sums of jobs, with the column ``by`` before ``USAGE_COLUMNS``.

        Args:
            by: One of ``GROUPINGS``. A job counts on the day on which it ended, in local time.
            wanted: Which jobs.
        """
        where, values = _where(wanted)
        key = {
            "user": "uid",
            "group": '"group"',
            "day": "date(end_ns / 1000000000, 'unixepoch', 'localtime')",
        }[by]
        sums = ", ".join(
            f"sum({name}) AS {name}"
            for name in (
                *(f"{each}_ns" for each in _SECONDS),
                *("leases", "iterations", "spilled_bytes", "restored_bytes", "dropped_bytes"),
            )
        )
        query = (
            f"SELECT {key} AS key, count(*) AS jobs, sum(end_ns - start_ns) AS wall_ns, {sums}"
            f" FROM jobs WHERE {where} GROUP BY 1 ORDER BY {'1' if by == 'day' else 'held_ns DESC'}"
        )
        rows = self._database.select(query, values)
        all_held = sum(row["held_ns"] for row in rows)
        return [_usage(by, row, all_held) for row in rows]


def _where(wanted: Filter) -> tuple[str, list[object]]:
    conditions = ["end_ns >= ?"]
    values: list[object] = [int(wanted.since_unix_seconds * _NS)]
    if wanted.uid is not None:
        conditions.append("uid = ?")
        values.append(wanted.uid)
    if wanted.group is not None:
        conditions.append('"group" = ?')
        values.append(wanted.group)
    return " AND ".join(conditions), values


def _job(row: sqlite3.Row) -> Row:
    said = dict(row)
    wall, waited = said["end_ns"] - said["start_ns"], said["waited_ns"]
    exit_code, signal_name = _ending(said["wait_status"])
    said |= {
        "user": user_name(said["uid"]),
        "start": _time(said["start_ns"]),
        "how": said["end"],
        "end": _time(said["end_ns"]),
        "exit_code": exit_code,
        "signal": signal_name,
        "wall_seconds": wall / _NS,
        "iterations_per_second": _rate(said["iterations"], wall),
        "iterations_per_second_alone": _rate(said["iterations"], wall - waited),
    }
    said |= {f"{each}_seconds": said[f"{each}_ns"] / _NS for each in _SECONDS}
    return {name: said[name] for name in JOB_COLUMNS}


def _usage(by: str, row: sqlite3.Row, all_held_ns: int) -> Row:
    said = dict(row)
    said |= {f"{each}_seconds": said[f"{each}_ns"] / _NS for each in (*_SECONDS, "wall")}
    said["held_share"] = said["held_ns"] / all_held_ns if all_held_ns else 0.0
    key = user_name(said["key"]) if by == "user" else said["key"]
    return {by: key} | {name: said[name] for name in USAGE_COLUMNS}


def _ending(wait_status: int | None) -> tuple[int | None, str | None]:
    """The exit code, or the signal's name; both None where it is not known."""
    if wait_status is None:
        return None, None
    try:
        is_signal = os.WIFSIGNALED(wait_status)
    except OverflowError:  # an archive may have it, of a damaged line that was once let through
        return None, None
    if not is_signal:
        return os.WEXITSTATUS(wait_status), None
    number = os.WTERMSIG(wait_status)
    try:
        return None, signal.Signals(number).name
    except ValueError:
        return None, str(number)


def _rate(iterations: int, time_ns: int) -> float:
    return iterations / (time_ns / _NS) if time_ns > 0 else 0.0


def _time(unix_ns: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(unix_ns / _NS))
