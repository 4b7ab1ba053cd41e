"""``gpushare top``: the devices and their jobs on the whole terminal, once a second."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Annotated

import typer

from gpushare.cli._screen.line import plain as plain_lines
from gpushare.cli._status.screen import unmanaged_lines
from gpushare.cli._targets.option import DeviceOption
from gpushare.cli.exit_code import ExitCode
from gpushare.cli.top.glyphs import glyphs_for
from gpushare.cli.top.line import plain
from gpushare.cli.top.look import Watch
from gpushare.cli.top.rows import Choice
from gpushare.cli.top.screen import Size, draw
from gpushare.errors import ConfigError, CoordinatorUnreachable
from gpushare.extras import check_installed


def add_to(app: typer.Typer) -> None:
    """Adds the subcommand."""
    app.command(name="top")(top)


def top(
    once: Annotated[bool, typer.Option("--once", help="Print one screen, and end.")] = False,
    readonly: Annotated[bool, typer.Option("--readonly", help="No key changes a job.")] = False,
    device: DeviceOption = "",
) -> None:
    """Show devices and jobs on the whole terminal, once a second; change one's own jobs by keys."""
    watch = Watch(device)
    choice = Choice(is_readonly=readonly)
    if once:
        _print_once(watch, choice)
        return
    _check_terminal()
    check_installed(
        "top",
        "top",
        "textual",
        instead="Without it there is gpushare top --once, and gpushare status --watch 2",
    )
    for name in ("COLUMNS", "LINES"):  # textual would hold to them when the terminal is resized
        os.environ.pop(name, None)
    from gpushare.cli.top.app import TopApp

    app = TopApp(watch, choice, glyphs_for(sys.stdout.encoding))
    app.run()
    if app.return_code:  # textual has shown what went wrong
        raise typer.Exit(ExitCode.ERROR)


def _print_once(watch: Watch, choice: Choice) -> None:
    look = watch.look()
    if not look.devices():
        raise CoordinatorUnreachable("; ".join(each.why for each in look.silent))
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a name may have what the output cannot show
    size = Size(shutil.get_terminal_size().columns, 0)
    # As in `gpushare status`: whoever prints one screen did not ask for a row of each.
    jobs_alone = look._replace(report=look.report | {"unmanaged": []})
    drawn = draw(jobs_alone, choice, size, glyphs_for(sys.stdout.encoding))
    print("\n".join(map(plain, drawn.lines)))
    rest = unmanaged_lines(look.report, size.width, with_unmanaged=False)
    if rest:
        print(plain_lines(rest))


def _check_terminal() -> None:
    """Says what to do where there is no terminal to draw on.

    Raises:
        ConfigError: There is none.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise ConfigError("top needs a terminal. For one screen as plain text: gpushare top --once")
