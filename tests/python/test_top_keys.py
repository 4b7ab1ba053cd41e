"""The other keys of ``gpushare top``, the mouse, and coordinators that come and go."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("textual")

from typing import TYPE_CHECKING

from textual.widgets import Input

from gpushare.cli.top.board import Board
from gpushare.cli.top.dialogs import Help
from gpushare.cli.top.line import Span
from gpushare.cli.top.look import Watch
from tests.python.fake_coordinator import FakeCoordinator, make_job
from tests.python.top_kit import Screen, play, three_jobs

if TYPE_CHECKING:
    from pathlib import Path


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

    with FakeCoordinator(tmp_path / "sock", three_jobs()) as fake:
        play(monkeypatch, fake.path, script)


def test_waits_for_a_coordinator_and_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sock"

    async def script(screen: Screen) -> None:
        assert "no coordinator answers" in screen.text()
        for _ in range(2):
            with FakeCoordinator(path, three_jobs()):
                await screen.wait(lambda: len(screen.names()) == 4)
            path.unlink()
            await screen.wait(lambda: "no coordinator answers" in screen.text())

    play(monkeypatch, str(path), script)


NONE = "is no coordinator of protocol 1"
LACKING = "the report lacks what is expected of it"
BROKEN: tuple[tuple[dict[str, Any], str], ...] = (
    ({"devices": 3}, NONE),
    ({"unmanaged": [{}]}, LACKING),
    ({"warnings": [{"device": "cpu", "text": None}]}, LACKING),
    ({"devices": [{**three_jobs()["devices"][0], "policy": 3}]}, LACKING),
    (
        {"devices": [{**three_jobs()["devices"][0], "jobs": [make_job(1, "a", share="all")]}]},
        LACKING,
    ),
)


@pytest.mark.parametrize(("broken", "said"), BROKEN)
def test_a_report_that_is_none_is_as_no_answer(
    broken: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUSHARE_SOCKET", str(tmp_path / "sock"))
    monkeypatch.setenv("GPUSHARE_CONFIG", os.devnull)
    with FakeCoordinator(tmp_path / "sock", three_jobs() | broken):
        look = Watch("").look()
    (silent,) = look.silent
    assert said in silent.why
    assert look.devices() == []


def test_the_thread_that_asks_changes_nothing_that_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUSHARE_SOCKET", str(tmp_path / "sock"))
    monkeypatch.setenv("GPUSHARE_CONFIG", os.devnull)
    with FakeCoordinator(tmp_path / "sock", three_jobs()):
        watch = Watch("")
        first, second = watch.look(), watch.look()
    assert first.history is second.history
    assert first.history.rates == {}
    first.remember()
    assert len(second.history.rates) == 3


def test_rows_are_selected_by_keys_and_by_the_mouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(screen: Screen) -> None:
        for key, name in (
            ("up", "[red]b"),
            ("down", "c"),
            ("tab", "a"),
            ("end", "pid 4242"),
            ("down", "pid 4242"),
            ("shift+tab", "a"),
            ("home", "[red]b"),
            ("pagedown", "pid 4242"),
            ("escape", ""),
        ):
            await screen.press(key)
            assert screen.selected() == name, key
        await screen.click(1)
        assert screen.selected() == "c"
        await screen.click(9)  # below the table
        assert screen.selected() == "c"
        await screen.press("f", "s", "w", "e", "enter")
        assert screen.selected() == ""  # what is not shown is not changed
        await screen.press("p")
        assert "no job is selected" in screen.text()

    with FakeCoordinator(tmp_path / "sock", three_jobs()) as fake:
        play(monkeypatch, fake.path, script)


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

    with FakeCoordinator(tmp_path / "sock", three_jobs()) as fake:
        play(monkeypatch, fake.path, script)
