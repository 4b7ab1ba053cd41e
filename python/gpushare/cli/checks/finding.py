"""What one check of ``gpushare doctor`` found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One line of the doctor."""

    name: str
    """What was looked at."""
    level: Level
    """"fail": gpushare cannot work. "warn": it works, with a loss that the text names."""
    text: str
    """What was found."""
    advice: str = ""
    """What to do; empty if nothing."""

    def render(self) -> str:
        """Returns the line."""
        line = f"{self.level:<5} {self.name}: {self.text}"
        return f"{line}. {self.advice}" if self.advice else line
