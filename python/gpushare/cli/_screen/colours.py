"""What is coloured, and how: states of jobs, and memory under pressure. Words say the same."""

from __future__ import annotations

_STATES = {
    "running": "green",
    "closing": "cyan",
    "waiting": "yellow",
    "paused": "magenta",
    "suspended": "magenta",
    "unmanaged": "dim",
    "idle": "dim",
}
NOTE = "dim"
WARNING = "yellow"
ALARM = "bold red"
_FULL, _NEARLY_FULL = 0.95, 0.8


def state_style(state: str) -> str:
    """Returns the style of a job's state."""
    return _STATES.get(state, "")


def pressure_style(used: float, whole: float) -> str:
    """Returns the style of a part of something that may run out."""
    if whole <= 0 or used < whole * _NEARLY_FULL:
        return ""
    return ALARM if used >= whole * _FULL else WARNING


def moved_style(text: str) -> str:
    """Returns the style of bytes that had to leave the device."""
    return "" if text in {"0 B", "-", "?"} else WARNING
