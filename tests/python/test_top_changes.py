"""Changes that the keys of ``gpushare top`` make: of real jobs beside a real coordinator.

What a key changes is read from what the coordinator says, and not from what top says of it.
"""

from __future__ import annotations

from contextlib import contextmanager
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("textual")

from textual.widgets import Static

from gpushare.cli.top.dialogs import Choose, Question
from tests.python.conftest import clean_environment
from tests.python.fake_coordinator import FakeCoordinator
from tests.python.top_kit import Screen, play, three_jobs
from tests.support import forked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOB = """
import sys, time, gpushare
job = gpushare.register(name=sys.argv[1])
print("ready", flush=True)
while True:
    with job.iteration():
        time.sleep(0.01)
"""


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
        look = screen.app._look
        assert look is not None
        await screen.wait(lambda: len(look.history.rates) == 2)  # of all looks
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

    with FakeCoordinator(tmp_path / "sock", three_jobs()) as fake:
        play(monkeypatch, fake.path, others)
        play(monkeypatch, fake.path, readonly, is_readonly=True)
        assert _others_job(fake) == []


def test_the_coordinators_no_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(FakeCoordinator):
        def answer(self, request: dict[str, Any]) -> dict[str, Any] | bytes | None:
            if request["type"] == "status_request":
                return super().answer(request)
            return {"v": 1, "type": "refused", "reason": "user 64007 may not change\x1b job 1"}

    async def script(screen: Screen) -> None:
        await screen.press("home", "p")
        question = screen.app.screen.query_one(Static).visual
        assert str(question).startswith("Pause job 1 ([red]b) on CPU?")  # no markup is read
        question_screen = screen.app.screen
        assert isinstance(question_screen, Question)
        for _ in range(2):  # a key that is pressed twice before the question is gone
            question_screen.action_answer(True)
        await screen.wait(lambda: "is not changed" in screen.text())
        assert "job 1 ([red]b) is not changed: user 64007 may not change? job 1" in screen.text()

    with Refusing(tmp_path / "sock", three_jobs()) as fake:
        play(monkeypatch, fake.path, script)
        assert _others_job(fake) == [{"v": 1, "type": "set", "job": 1, "is_paused": True}]
