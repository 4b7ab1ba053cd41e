"""Plays ``gpushare top`` in textual's own test mode: keys, clicks, and what is on the terminal."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from gpushare.cli.top.app import TopApp
from gpushare.cli.top.board import Board
from gpushare.cli.top.glyphs import UNICODE
from gpushare.cli.top.line import plain
from gpushare.cli.top.look import Watch
from gpushare.cli.top.rows import Choice
from tests.python.fake_coordinator import make_job, make_report

if TYPE_CHECKING:
    import pytest
    from textual.pilot import Pilot

Play = Callable[["Screen"], Awaitable[None]]


class Screen:
    """The program, and what a test does with it."""

    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    def text(self) -> str:
        """What is on the terminal now."""
        drawn = self.app._drawn
        return "\n".join(map(plain, drawn.lines)) if drawn is not None else ""

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    async def wait(self, is_true: Callable[[], object]) -> None:
        """Until it is true; pytest's own limit ends a test in which it never is."""
        while not is_true():
            await asyncio.sleep(0.02)

    async def click(self, row: int) -> None:
        """On a row of the table, from above."""
        drawn = self.app._drawn
        assert drawn is not None
        await self._pilot.click(Board, offset=(10, drawn.first_row + row))

    def selected(self) -> str:
        """The name in the row that is selected, or ""."""
        row = self.app._selected()
        return row.fields["name"] if row is not None else ""

    def names(self) -> list[str]:
        """Of the rows, from above."""
        drawn = self.app._drawn
        return [row.fields["name"] for row in drawn.rows] if drawn is not None else []


def play(
    monkeypatch: pytest.MonkeyPatch, socket: str, script: Play, *, width: int = 100, **choice: Any
) -> None:
    """Runs the program beside the coordinator at that socket, and the script with it."""
    monkeypatch.setenv("GPUSHARE_SOCKET", socket)
    monkeypatch.setenv("GPUSHARE_CONFIG", os.devnull)
    monkeypatch.setattr("gpushare.cli.top.app.LOOK_SECONDS", 0.1)
    app = TopApp(Watch(""), Choice(**choice), UNICODE)

    async def run() -> None:
        async with app.run_test(size=(width, 24)) as pilot:
            screen = Screen(app, pilot)
            await screen.wait(screen.text)
            await script(screen)

    asyncio.run(asyncio.wait_for(run(), 15))


def three_jobs() -> dict[str, Any]:
    """A report of two own jobs, one of another user between them, and a process that is none."""
    report = make_report()
    report["devices"][0]["jobs"] = [
        make_job(1, "[red]b", uid=os.getuid(), resident_bytes=3 << 20),
        make_job(2, "c", uid=os.getuid() + 1, resident_bytes=1 << 20),
        make_job(3, "a", uid=os.getuid(), resident_bytes=2 << 20, group="sweep"),
    ]
    return report
