"""``gpushare usage``: sums over jobs that have ended, by user, by group or by day."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from gpushare._accounts.columns import USAGE_COLUMNS
from gpushare.cli._accounts.options import (
    ArchiveOption,
    Format,
    FormatOption,
    SinceOption,
    make_filter,
    open_accounts,
)
from gpushare.cli._accounts.show import Cell, count_of, say_if_none, show, size_of, text_of, time_of
from gpushare.cli._screen.columns import Column


class By(str, Enum):
    """What the sums are for."""

    USER = "user"
    GROUP = "group"
    DAY = "day"


_TABLE: tuple[Cell, ...] = (
    (Column("JOBS", is_number=True), count_of("jobs")),
    (Column("WALL", drop=3, is_number=True), time_of("wall_seconds")),
    (Column("HELD", is_number=True), time_of("held_seconds")),
    (Column("OF ALL", is_number=True), lambda row: f"{row['held_share']:.0%}"),
    (Column("WAITED", drop=1, is_number=True), time_of("waited_seconds")),
    (Column("SWITCHING", drop=4, is_number=True), time_of("switching_seconds")),
    (Column("ITERATIONS", drop=2, is_number=True), count_of("iterations")),
    (Column("SPILLED", drop=5, is_number=True), size_of("spilled_bytes")),
    (Column("RESTORED", drop=6, is_number=True), size_of("restored_bytes")),
)


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="usage")(usage)


def usage(
    by: Annotated[By, typer.Option(help="What the sums are for.")] = By.USER,
    since: SinceOption = "7d",
    form: FormatOption = Format.TABLE,
    archive: ArchiveOption = "",
) -> None:
    """Sum up the jobs that have ended. docs/accounts.md defines the columns."""
    wanted = make_filter(since=since, me=False, user="", group=None)
    with open_accounts(archive) as accounts:
        rows = accounts.usage(by.value, wanted)
    show(
        rows,
        (by.value, *USAGE_COLUMNS),
        ((Column(by.name, least=12), text_of(by.value)), *_TABLE),
        form,
    )
    say_if_none(rows, since, accounts.folders)
