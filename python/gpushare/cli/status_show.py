"""Asks the coordinator and prints what it says."""

from __future__ import annotations

import json
import sys
import time

from gpushare import config
from gpushare.cli.status_screen import render_report
from gpushare.coordinator_client import CoordinatorClient

_CLEAR_SCREEN = "\x1b[H\x1b[2J"


def show_status(*, as_json: bool, watch_seconds: float | None) -> None:
    """Prints the status once, or again and again until Ctrl-C.

    Raises:
        CoordinatorUnreachable: No coordinator answers.
    """
    client = CoordinatorClient(config.socket_paths(config.load()))
    is_screen = watch_seconds is not None and not as_json and sys.stdout.isatty()
    try:
        while True:
            report = client.status()
            text = json.dumps(report) if as_json else render_report(report)
            print(_CLEAR_SCREEN + text if is_screen else text, flush=True)
            if watch_seconds is None:
                return
            time.sleep(watch_seconds)
    except KeyboardInterrupt:
        return
