"""``gpushare history``: the jobs that have ended on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from gpushare._accounts.columns import JOB_COLUMNS
from gpushare.cli._accounts.gangs import fold
from gpushare.cli._accounts.options import (
    ArchiveOption,
    Format,
    FormatOption,
    SinceOption,
    make_filter,
    open_accounts,
)
from gpushare.cli._accounts.show import (
    Cell,
    count_of,
    ending,
    peak_of,
    say_if_none,
    show,
    size_of,
    text_of,
    time_of,
)
from gpushare.cli._screen.colours import WARNING
from gpushare.cli._screen.columns import NOTHING, Column

if TYPE_CHECKING:
    from gpushare._accounts.accounts import Row


def _rate_of(name: str, form: str) -> Callable[[Row], str]:
    return lambda row: form.format(row[name])


def _ending_style(text: str) -> str:
    return "" if text in {"ended", "ended, exit code 0"} else WARNING


COLUMNS: tuple[Cell, ...] = (
    (Column("ID"), text_of("id")),
    (Column("USER", drop=5, least=8), text_of("user")),
    (Column("NAME", least=12), text_of("name")),
    (Column("GROUP", drop=6, least=8), text_of("group")),
    (Column("ENDED", drop=2), lambda row: row["end"][:19].replace("T", " ")),
    (Column("HOW", drop=1, style=_ending_style), ending),
    (Column("WALL", is_number=True), time_of("wall_seconds")),
    (Column("HELD", drop=4, is_number=True), time_of("held_seconds")),
    (Column("WAITED", drop=3, is_number=True), time_of("waited_seconds")),
    (Column("ITERATIONS", drop=8, is_number=True), count_of("iterations")),
    (Column("IT/S", drop=9, is_number=True), _rate_of("iterations_per_second", "{:.1f}")),
    (
        Column("(ALONE)", drop=11, is_number=True),
        _rate_of("iterations_per_second_alone", "({:.1f})"),
    ),
    (Column("PEAK", drop=7, is_number=True), lambda row: peak_of(row, NOTHING)),
    (Column("SPILLED", drop=10, is_number=True), size_of("spilled_bytes")),
)
"""Of the table."""


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="history")(history)


def history(
    *,
    since: SinceOption = "7d",
    me: Annotated[bool, typer.Option("--me", help="Only your own jobs.")] = False,
    user: Annotated[str, typer.Option(help="Only jobs of this user, by name or number.")] = "",
    group: Annotated[str | None, typer.Option(help='Of this group; "" for none.')] = None,
    most: Annotated[int | None, typer.Option("-n", help="The newest so many.", min=1)] = None,
    form: FormatOption = Format.TABLE,
    archive: ArchiveOption = "",
) -> None:
    """List the jobs that have ended, the newest last. docs/accounts.md defines the columns."""
    wanted = make_filter(since=since, me=me, user=user, group=group, most=most or 0)
    with open_accounts(archive) as accounts:
        rows = accounts.jobs(wanted)
    show(fold(rows) if form is Format.TABLE else rows, JOB_COLUMNS, COLUMNS, form)
    say_if_none(rows, since, accounts.folders)
