"""``gpushare top`` on a terminal: its keys, in textual's own test mode, beside a real coordinator.

The jobs are real, too: what a key changes is read from the job, and not from what top says of it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("textual")

from textual.widgets import Input, Static

from gpushare.cli.top.app import TopApp
from gpushare.cli.top.board import Board
from gpushare.cli.top.dialogs import Choose, Help, Question
from gpushare.cli.top.glyphs import UNICODE
from gpushare.cli.top.line import Span, plain
from gpushare.cli.top.look import Watch
from gpushare.cli.top.rows import Choice
from tests.python.conftest import clean_environment
from tests.python.fake_coordinator import FakeCoordinator, make_job, make_report
from tests.support import forked

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

JOB = """
import sys, time, gpushare
job = gpushare.register(name=sys.argv[1])
print("ready", flush=True)
while True:
    with job.iteration():
        time.sleep(0.01)
"""

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


@contextmanager
def running_job(
    name: str, settings: dict[str, str], folder: Path
) -> Iterator[forked.ForkedProcess]:
    """A job that iterates until it is killed: one that is paused would not end by itself."""
    script = folder / f"{name}.py"
    script.write_text(JOB)
    words = [str(script), name]
    job = forked.start(words, clean_environment(**settings), stdout=PIPE)
    try:
        assert job.stdout is not None
        assert job.stdout.readline() == "ready\n"
        yield job
    finally:
        job.kill()
        job.communicate()


def _row(screen: Screen, name: str) -> dict[str, Any]:
    """What the coordinator said of a job at the last look."""
    look = screen.app._look
    assert look is not None
    return next(job for job in look.devices()[0]["jobs"] if job["name"] == name)


def test_a_key_pauses_resumes_and_ranks_a_real_job(
    coordinator: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(screen: Screen) -> None:
        await screen.wait(lambda: screen.names()[:2] == ["one", "two"])
        await screen.press("p")
        assert "no job is selected" in screen.text()
        await screen.press("down", "p")
        assert isinstance(screen.app.screen, Question)
        await screen.press("n")  # the question is refused
        assert "nothing is changed" in screen.text()
        assert _row(screen, "one")["state"] != "paused"
        await screen.press("p", "y")
        await screen.wait(lambda: _row(screen, "one")["state"] == "paused")
        before = _row(screen, "one")["iterations"]
        others = _row(screen, "two")["iterations"]
        await screen.wait(lambda: _row(screen, "two")["iterations"] > others)
        assert _row(screen, "one")["iterations"] == before
        assert "paused" in screen.text()
        await screen.press("r", "y")
        await screen.wait(lambda: _row(screen, "one")["iterations"] > before)
        await screen.press("s")
        assert isinstance(screen.app.screen, Choose)
        await screen.press("enter")  # the one that it has
        assert "nothing is changed" in screen.text()
        await screen.press("s", "down", "enter")
        await screen.wait(lambda: _row(screen, "one")["priority"] == "opportunistic")
        assert _row(screen, "two")["priority"] == "normal"

    settings = {**coordinator, "lanes": "off"}
    with running_job("one", settings, tmp_path), running_job("two", settings, tmp_path):
        play(monkeypatch, coordinator["socket"], script)


def _others_job(fake: FakeCoordinator) -> list[dict[str, Any]]:
    return [request for request in fake.requests if request["type"] != "status_request"]


def _report() -> dict[str, Any]:
    report = make_report()
    report["devices"][0]["jobs"] = [
        make_job(1, "[red]b", uid=os.getuid(), resident_bytes=3 << 20),
        make_job(2, "c", uid=os.getuid() + 1, resident_bytes=1 << 20),
        make_job(3, "a", uid=os.getuid(), resident_bytes=2 << 20, group="sweep"),
    ]
    return report


def test_another_users_job_and_a_readonly_screen_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def others(screen: Screen) -> None:
        for key in ("p", "r", "s"):
            await screen.press("home", "down", key)
            assert screen.app.screen is screen.app.screen_stack[0]
            assert "job 2 (c) is" in screen.text()
            assert "only one's own jobs are changed here" in screen.text()
        await screen.press("end", "p")
        assert "pid 4242 is no job" in screen.text()

    async def readonly(screen: Screen) -> None:
        assert "p pause" not in screen.text()
        for key in ("p", "r", "s"):
            await screen.press("home", key)
            assert screen.app.screen is screen.app.screen_stack[0]
            assert "--readonly" in screen.text()

    with FakeCoordinator(tmp_path / "sock", _report()) as fake:
        play(monkeypatch, fake.path, others)
        play(monkeypatch, fake.path, readonly, is_readonly=True)
        assert _others_job(fake) == []


def test_the_coordinators_no_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(FakeCoordinator):
        def answer(self, request: dict[str, Any]) -> dict[str, Any] | bytes | None:
            if request["type"] == "status_request":
                return super().answer(request)
            return {"v": 1, "type": "refused", "reason": "user 7 may not change\x1b job 1"}

    async def script(screen: Screen) -> None:
        await screen.press("home", "p")
        question = screen.app.screen.query_one(Static).visual
        assert str(question).startswith("Pause job 1 ([red]b) on CPU?")  # no markup is read
        await screen.press("y")
        await screen.wait(lambda: "is not changed" in screen.text())
        assert "job 1 ([red]b) is not changed: user 7 may not change? job 1" in screen.text()

    with Refusing(tmp_path / "sock", _report()) as fake:
        play(monkeypatch, fake.path, script)
        assert _others_job(fake) == [{"v": 1, "type": "set", "job": 1, "is_paused": True}]


def test_keys_sort_filter_help_and_quit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(screen: Screen) -> None:
        process = "pid 4242"
        assert screen.names() == ["[red]b", "c", "a", process]
        await screen.press("full_stop", "full_stop", "full_stop")
        assert "+NAME" in screen.text()
        assert screen.names() == ["[red]b", "a", "c", process]
        await screen.press("slash")
        assert screen.names() == ["c", "a", "[red]b", process]
        await screen.press("comma", "comma", "comma", "slash")
        assert screen.names() == ["[red]b", "c", "a", process]
        await screen.press("f", "s", "w", "e", "enter")  # the line takes the keys
        assert screen.names() == ["a"]
        assert 'filter "swe"' in screen.text()
        assert not screen.app.query_one(Input).display
        await screen.press("u", "escape")
        assert len(screen.names()) == 4
        await screen.press("u")
        assert screen.names() == ["[red]b", "a"]
        await screen.press("h")
        assert isinstance(screen.app.screen, Help)
        await screen.press("h")  # which closes it, as any key, and opens no second one
        assert screen.app.screen is screen.app.screen_stack[0]
        await screen.press("q")
        assert screen.app._exit

    with FakeCoordinator(tmp_path / "sock", _report()) as fake:
        play(monkeypatch, fake.path, script)


def test_waits_for_a_coordinator_and_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sock"

    async def script(screen: Screen) -> None:
        assert "no coordinator answers" in screen.text()
        for _ in range(2):
            with FakeCoordinator(path, _report()):
                await screen.wait(lambda: len(screen.names()) == 4)
            path.unlink()
            await screen.wait(lambda: "no coordinator answers" in screen.text())

    play(monkeypatch, str(path), script)


def test_only_lines_that_differ_are_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []

    async def script(screen: Screen) -> None:
        board = screen.app.query_one(Board)
        monkeypatch.setattr(board, "refresh", lambda *all_, **_: drawn.extend(r.y for r in all_))
        board.show([(Span(f"line {n}"),) for n in range(5)])
        drawn.clear()
        board.show([(Span("other" if n == 3 else f"line {n}"),) for n in range(5)])
        assert drawn == [3]
        assert board.render_line(3).text.rstrip() == "other"
        board.show([(Span("line 0"),)])
        assert drawn == [3, 1, 2, 3, 4]
        assert board.render_line(3).text.strip() == ""

    with FakeCoordinator(tmp_path / "sock", _report()) as fake:
        play(monkeypatch, fake.path, script)
