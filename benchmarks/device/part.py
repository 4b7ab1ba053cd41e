"""A part of the device suite: one command, its limits, and what came of it."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class Part:
    """One command of the suite, and what came of it."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    """What it sees besides the suite's own environment."""
    seconds: float = 0.0
    has_begun: bool = False
    exit_status: int | None = None
    """None: it was not run, or the suite ended while it ran. Negative: the signal that ended it."""
    reason: str = ""
    """Why it was not run, or what ended it."""
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """With their reasons."""
    texts: dict[str, str] = field(default_factory=dict)
    """What a failed test said, by its name."""
    left_behind: list[str] = field(default_factory=list)
    """Processes that were there when it had ended, and were ended then."""
    last_lines: list[str] = field(default_factory=list)
    """The end of what it wrote, if it ended badly."""
    reports: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether it ran, and nothing of it failed."""
        return self.exit_status == 0 and not self.failed

    @property
    def outcome(self) -> str:
        """In words, for a table."""
        if not self.has_begun and self.exit_status is None:
            return f"NOT RUN: {self.reason}"
        if self.exit_status is None:
            return f"LOST: {self.reason or 'the suite ended while it ran'}"
        if self.is_good:
            return self.reason or "good"
        return f"FAILED ({_status_text(self.exit_status)}) {self.reason}".rstrip()


def _status_text(exit_status: int) -> str:
    """A number, or the name of the signal that ended it."""
    if exit_status >= 0:
        return str(exit_status)
    try:
        return signal.Signals(-exit_status).name
    except ValueError:
        return str(exit_status)
