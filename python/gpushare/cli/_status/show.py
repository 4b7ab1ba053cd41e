"""Asks the coordinators and prints what they say."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from gpushare._settings import config
from gpushare.cli._status.memory import render_memory
from gpushare.cli._status.screen import render_report
from gpushare.cli._targets.coordinators import (
    ask_each,
    find_sockets,
    merge_reports,
    without_doubles,
)
from gpushare.errors import CoordinatorUnreachable

if TYPE_CHECKING:
    from gpushare.cli._status.options import StatusOptions
    from gpushare.cli._targets.coordinators import Answer, DeviceSockets

_LISTS = ("coordinators", "devices", "unmanaged", "warnings", "decisions")
"""What of a report is a list, and empty where no coordinator answers."""
_CLEAR_SCREEN = "\x1b[H\x1b[2J"


def show_status(options: StatusOptions) -> None:
    """Prints the status once, or again and again until Ctrl-C.

    Raises:
        ConfigError: The device is named in a way that only a job understands.
        CoordinatorUnreachable: No coordinator answers.
    """
    settings = config.load()
    is_screen = options.watch_seconds is not None and not options.as_json and sys.stdout.isatty()
    render = render_memory if options.is_memory else render_report
    try:
        while True:
            reports = without_doubles(_ask(find_sockets(settings, options.device), options))
            if options.as_json:
                text = json.dumps(merge_reports(reports))
            else:
                text = "\n\n".join(map(render, reports))
            print(_CLEAR_SCREEN + text if is_screen else text, flush=True)
            if options.watch_seconds is None:
                return
            time.sleep(options.watch_seconds)
    except KeyboardInterrupt:
        return


def _ask(sockets: list[DeviceSockets], options: StatusOptions) -> list[Answer]:
    """Asks all; where nobody answers a program that reads one JSON object gets an empty report."""
    try:
        return ask_each(sockets)
    except CoordinatorUnreachable:
        if options.as_json and options.watch_seconds is None:
            nothing: dict[str, list[str]] = {key: [] for key in _LISTS}
            print(json.dumps({"schema_version": 1, "coordinator": None, **nothing}), flush=True)
        raise
