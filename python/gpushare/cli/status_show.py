"""Asks the coordinator and prints what it says."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from gpushare import config
from gpushare.cli.status_memory import render_memory
from gpushare.cli.status_screen import render_report
from gpushare.coordinator_client import CoordinatorClient

if TYPE_CHECKING:
    from gpushare.cli.status_options import StatusOptions

_CLEAR_SCREEN = "\x1b[H\x1b[2J"


def show_status(options: StatusOptions) -> None:
    """Prints the status once, or again and again until Ctrl-C.

    Raises:
        CoordinatorUnreachable: No coordinator answers.
    """
    client = CoordinatorClient(config.socket_paths(config.load()))
    is_screen = options.watch_seconds is not None and not options.as_json and sys.stdout.isatty()
    render = render_memory if options.is_memory else render_report
    try:
        while True:
            report = client.status()
            text = json.dumps(report) if options.as_json else render(report)
            print(_CLEAR_SCREEN + text if is_screen else text, flush=True)
            if options.watch_seconds is None:
                return
            time.sleep(options.watch_seconds)
    except KeyboardInterrupt:
        return
