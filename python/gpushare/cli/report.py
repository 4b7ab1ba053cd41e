"""``gpushare report``: all that is known of one job that has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpushare._accounts.columns import JOB_COLUMNS
from gpushare.cli._accounts.options import ArchiveOption, Format, FormatOption, open_accounts
from gpushare.cli._accounts.show import ending, peak_of, show
from gpushare.cli._screen.line import fields, wrap
from gpushare.cli._screen.terminal import screen_width
from gpushare.cli._screen.terminal import show as show_lines
from gpushare.cli.units import format_bytes, format_span
from gpushare.errors import GpushareError
from gpushare.printable import printable

if TYPE_CHECKING:
    from gpushare._accounts.accounts import Row


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="report")(report)


def report(
    job: Annotated[str, typer.Argument(help="An id's beginning, or a job's number or name.")],
    form: FormatOption = Format.TABLE,
    archive: ArchiveOption = "",
) -> None:
    """Show one job that has ended: the newest that the argument can mean."""
    with open_accounts(archive) as accounts:
        found = accounts.find(job)
    if not found:
        raise GpushareError(
            f"no job in the accounts has the id, number or name {printable(job)!r}. "
            "See: gpushare history --since all; a job that still runs: gpushare status"
        )
    if form is not Format.TABLE:
        show(found[-1:], JOB_COLUMNS, (), form)
        return
    show_lines(fields(_fields(found[-1]), screen_width()))
    if len(found) > 1:
        text = (
            f"earlier jobs that {printable(job)!r} can mean: {len(found) - 1}. See their ids in "
            "gpushare history --since all"
        )
        show_lines([[], *wrap(text, screen_width())])


def _fields(row: Row) -> list[tuple[str, object]]:
    wall = row["wall_seconds"]

    def part(seconds: float) -> str:
        return f"{format_span(seconds)} ({seconds / wall:.0%} of it)" if wall else "0 s"

    hidden = "only the user and root may see it"
    return [
        ("job", f"{row['id']} ({row['name'] or 'without a name'}), number {row['job']}"),
        ("group", row["group"] or "none"),
        ("user", f"{row['user']} ({row['uid']})"),
        ("command", hidden if row["command"] is None else row["command"]),
        ("process", hidden if row["pid"] is None else row["pid"]),
        ("device", f"{row['device']} of {row['host']}, policy {row['policy']}"),
        ("start", row["start"]),
        ("end", row["end"]),
        ("how it ended", ending(row)),
        ("wall clock", format_span(wall)),
        ("held the device", f"{part(row['held_seconds'])}, leases: {row['leases']}"),
        ("waited", part(row["waited_seconds"])),
        ("switching", part(row["switching_seconds"])),
        ("iterations", f"{row['iterations']}, {row['optimizer_steps']} optimizer steps"),
        ("inside iterations", part(row["busy_seconds"])),
        ("speed", f"{row['iterations_per_second']:.2f} iterations/s"),
        ("speed alone", f"{row['iterations_per_second_alone']:.2f} iterations/s"),
        ("spilled to the host", format_bytes(row["spilled_bytes"])),
        ("restored", format_bytes(row["restored_bytes"])),
        ("dropped", format_bytes(row["dropped_bytes"])),
        ("peak memory", peak_of(row, "not known")),
    ]
