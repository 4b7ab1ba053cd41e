"""The columns of ``gpushare ps``: what each is called, what it says, and in which unit.

Scripts rely on the names, the units and the meaning of each column, so they stay as they are. Each
value is one field of the status report (``gpushare status --json``), in full precision.
docs/commands.md has the same table; tests/python/test_cli_ps.py compares the two.
"""

from __future__ import annotations

import difflib
from typing import Any, NamedTuple

from gpushare.errors import ConfigError
from gpushare.users import user_name

Value = str | int | float | None
"""None: the coordinator does not know it, or the job has no such thing."""


class Column(NamedTuple):
    """One column."""

    name: str
    """What ``-o`` and ``--sort`` call it."""
    text: str
    """What it says, as a sentence for ``-o help``."""
    field: str
    """Of the job's row in the status report."""
    unit: str = ""
    """"" where the value is a text or a plain number."""
    is_zero_none: bool = False
    """Whether 0 stands for "there is none", as of a limit."""


COLUMNS = (
    Column("job", "The job's number, of its coordinator.", "job"),
    Column("name", "The job's name.", "name"),
    Column("group", "The group that the job was registered with.", "group"),
    Column("user", "The name of the job's user, or the number if it has no name.", "uid"),
    Column("uid", "The number of the job's user.", "uid"),
    Column("pid", "The number of the job's process.", "pid"),
    Column("device", "The device that the job shares.", "device"),
    Column("lane", "The lane in which the job takes turns.", "lane"),
    Column("gang", "The gang of ranks that the job belongs to.", "gang"),
    Column("state", "What the job does now, as in gpushare status.", "state"),
    Column("priority", "The job's class.", "priority"),
    Column("weight", "The job's weight inside its class.", "weight"),
    Column("share", "The part of the recent time that the job got, 0 to 1.", "share"),
    Column("iterations", "The iterations that are done.", "iterations"),
    Column(
        "iterations_total", "The iterations that the job said it will do.", "iterations_total", "",
        is_zero_none=True,
    ),
    Column("rate", "Iterations in a second since the job registered.", "iterations_per_second",
           "1/s"),
    Column("rate_alone", "The same without the time in which the job waited for leases.",
           "iterations_per_second_alone", "1/s"),
    Column("iteration", "How long an iteration takes.", "iteration_seconds", "s",
           is_zero_none=True),
    Column("waiting", "How long the job has been waiting now.", "waiting_seconds", "s"),
    Column("waited", "How long the job has waited for leases in all.", "waited_seconds", "s"),
    Column("served", "How long the job has held leases in all.", "served_seconds", "s"),
    Column("resident", "The job's own memory on the device.", "resident_bytes", "B"),
    Column("shared", "Memory on the device that the job shares with its lane.", "lane_bytes", "B"),
    Column("spilled", "The job's memory in the host tier.", "spilled_bytes", "B"),
    Column("persistent", "Memory that outlives an iteration.", "persistent_bytes", "B"),
    Column("ephemeral", "The most memory that an iteration needs besides.", "ephemeral_bytes", "B"),
    Column("memory_limit", "The most memory that the job may hold.", "memory_limit_bytes", "B",
           is_zero_none=True),
    Column("share_limit", "The most of the device's time that the job may have, 0 to 1.",
           "share_limit", "", is_zero_none=True),
    Column("deadline", "How long an iteration may take.", "deadline_seconds", "s",
           is_zero_none=True),
    Column("command", "The command line of the job's process.", "command"),
    Column("explain", "What the job waits for, in words.", "explain"),
)  # fmt: skip

BY_NAME = {column.name: column for column in COLUMNS}

DEFAULT = "job,user,name,group,state,priority,share,iterations,waiting,resident,spilled"


def choose(names: str) -> list[Column]:
    """Returns the columns with these names, in this order.

    Args:
        names: With commas between them.

    Raises:
        ConfigError: A name is no column's.
    """
    return [find(name.strip()) for name in names.split(",")]


def find(name: str) -> Column:
    """Returns the column with this name.

    Raises:
        ConfigError: No column has it.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    near = difflib.get_close_matches(name, BY_NAME, 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(
        f"ps: no column is called {name!r}{meant or '.'} All columns: gpushare ps -o help"
    )


def value_of(column: Column, row: dict[str, Any]) -> Value:
    """Returns what a column says of a job.

    Args:
        column: Which.
        row: The job's, of the status report. Coordinators of earlier versions have fewer fields.
    """
    value: Value = row.get(column.field)
    if value is None or value == "" or (column.is_zero_none and value == 0):
        return None
    return user_name(int(value)) if column.name == "user" else value


def sorted_rows(rows: list[dict[str, Any]], order: str) -> list[dict[str, Any]]:
    """Returns the rows in order; those without a value are last either way.

    Args:
        rows: Of jobs.
        order: A column's name, with a "-" before it for the largest first.

    Raises:
        ConfigError: No column has that name.
    """
    column = find(order.removeprefix("-"))
    known = [row for row in rows if value_of(column, row) is not None]
    unknown = [row for row in rows if value_of(column, row) is None]

    def key(row: dict[str, Any]) -> Any:
        return value_of(column, row)

    return sorted(known, key=key, reverse=order.startswith("-")) + unknown
