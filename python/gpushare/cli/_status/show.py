"""Asks the coordinators and prints what they say."""

from __future__ import annotations

import functools
import json
import time
from typing import TYPE_CHECKING

from gpushare._settings import config
from gpushare.cli._screen.terminal import has_own_screen, screen_width, show
from gpushare.cli._status.memory import memory_lines
from gpushare.cli._status.screen import status_lines
from gpushare.cli._status.stamps import utc_text, with_stamps
from gpushare.cli._targets.coordinators import (
    ask_each,
    find_sockets,
    merge_reports,
    without_doubles,
)
from gpushare.errors import CoordinatorUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpushare.cli._screen.line import Line
    from gpushare.cli._status.options import StatusOptions
    from gpushare.cli._targets.coordinators import Answer, DeviceSockets

_LISTS = ("coordinators", "devices", "unmanaged", "warnings", "decisions")
"""What of a report is a list, and empty where no coordinator answers."""


def show_status(options: StatusOptions) -> None:
    """Prints the status once, or again and again until Ctrl-C.

    On a terminal, watching has the screen to itself and goes on while no coordinator runs.

    Raises:
        ConfigError: The device is named in a way that only a job understands.
        CoordinatorUnreachable: No coordinator answers.
    """
    settings = config.load()
    sockets = functools.partial(find_sockets, settings, options.device)
    try:
        if options.watch_seconds is None:
            _show_once(sockets, options)
        elif options.as_json or not has_own_screen():
            while True:
                _show_once(sockets, options)
                time.sleep(options.watch_seconds)
        else:
            from gpushare.cli._status.watch import watch

            watch(lambda width: _lines(sockets, options, width), options.watch_seconds)
    except KeyboardInterrupt:
        return


def _show_once(sockets: Callable[[], list[DeviceSockets]], options: StatusOptions) -> None:
    if options.as_json:
        reports = [with_stamps(report) for report in without_doubles(_ask(sockets(), options))]
        print(json.dumps(merge_reports(reports)), flush=True)
    else:
        show(_lines(sockets, options, screen_width()))


def _lines(
    sockets: Callable[[], list[DeviceSockets]], options: StatusOptions, width: int | None
) -> list[Line]:
    """The screens of all coordinators, with an empty line between two."""
    layout = memory_lines if options.is_memory else status_lines
    lines: list[Line] = []
    for report in without_doubles(ask_each(sockets())):
        lines += [[]] if lines else []
        lines += layout(report, width, with_unmanaged=options.with_unmanaged)
    return lines


def _ask(sockets: list[DeviceSockets], options: StatusOptions) -> list[Answer]:
    """Asks all; where nobody answers a program that reads one JSON object gets an empty report."""
    try:
        return ask_each(sockets)
    except CoordinatorUnreachable:
        if options.as_json and options.watch_seconds is None:
            nothing: dict[str, list[str]] = {key: [] for key in _LISTS}
            report = {"schema_version": 1, "coordinator": None, "time": utc_text(time.time())}
            print(json.dumps({**report, **nothing}), flush=True)
        raise
