"""``gpushare history``: the jobs that have ended on this machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from gpushare._accounts.columns import JOB_COLUMNS
from gpushare.cli._accounts.options import (
    ArchiveOption,
    Format,
    FormatOption,
    SinceOption,
    make_filter,
    open_accounts,
)
from gpushare.cli._accounts.show import Cell, count_of, ending, show, size_of, text_of, time_of

if TYPE_CHECKING:
    from gpushare._accounts.accounts import Row


def _rates(row: Row) -> str:
    return f"{row['iterations_per_second']:.1f} ({row['iterations_per_second_alone']:.1f})"


TABLE: tuple[Cell, ...] = (
    ("ID", text_of("id")),
    ("USER", text_of("user")),
    ("NAME", text_of("name")),
    ("GROUP", text_of("group")),
    ("ENDED", lambda row: row["end"][:19].replace("T", " ")),
    ("HOW", ending),
    ("WALL", time_of("wall_seconds")),
    ("HELD", time_of("held_seconds")),
    ("WAITED", time_of("waited_seconds")),
    ("ITERATIONS", count_of("iterations")),
    ("IT/S (ALONE)", _rates),
    ("PEAK", size_of("peak_bytes")),
    ("SPILLED", size_of("spilled_bytes")),
)
"""What people read of a job that has ended."""


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="history")(history)


def history(
    *,
    since: SinceOption = "7d",
    me: Annotated[bool, typer.Option("--me", help="My own jobs.")] = False,
    user: Annotated[str, typer.Option(help="Of this user, by name or number.")] = "",
    group: Annotated[str | None, typer.Option(help='Of this group; "" for none.')] = None,
    most: Annotated[int | None, typer.Option("-n", help="The newest so many.", min=1)] = None,
    form: FormatOption = Format.TABLE,
    archive: ArchiveOption = "",
) -> None:
    """List the jobs that have ended, the newest last. docs/accounts.md defines the columns."""
    wanted = make_filter(since=since, me=me, user=user, group=group, most=most or 0)
    accounts = open_accounts(archive)
    rows = accounts.jobs(wanted)
    show(rows, JOB_COLUMNS, TABLE, form)
    if not rows:
        folders = ", ".join(map(str, accounts.folders))
        print(f"gpushare: no such job in the accounts of {folders}", file=sys.stderr)
