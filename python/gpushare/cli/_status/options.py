"""The plain forms of ``gpushare status``'s options, read without typer."""

from __future__ import annotations

from typing import NamedTuple

LEAST_WATCH_SECONDS = 0.1


class StatusOptions(NamedTuple):
    """What the user asked for."""

    as_json: bool = False
    """One JSON object instead of the screen."""
    is_memory: bool = False
    """Where the bytes are, instead of who runs."""
    watch_seconds: float | None = None
    """Time between two looks; None for one look."""
    device: str = ""
    """Only this device: cpu, cpu:1 or cuda:UUID."""
    with_unmanaged: bool = False
    """List the processes that are no jobs, instead of counting them."""


def parse_plain(arguments: list[str]) -> StatusOptions | None:
    """Reads these options alone; None for what typer is to judge."""
    options = StatusOptions()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--json":
            options = options._replace(as_json=True)
        elif word == "--memory":
            options = options._replace(is_memory=True)
        elif word == "--unmanaged":
            options = options._replace(with_unmanaged=True)
        elif word == "--watch" and rest:
            seconds = _parse_seconds(rest.pop(0))
            if seconds is None:
                return None
            options = options._replace(watch_seconds=seconds)
        elif word == "--device" and rest:
            options = options._replace(device=rest.pop(0))
        else:
            return None
    return options


def _parse_seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if LEAST_WATCH_SECONDS <= seconds < float("inf") else None
