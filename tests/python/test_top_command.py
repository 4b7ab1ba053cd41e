"""``gpushare top`` as a command: one screen, no terminal, no textual, and a real terminal."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.python.command_line import gpushare
from tests.python.conftest import clean_environment
from tests.python.fake_coordinator import FakeCoordinator, make_report

if TYPE_CHECKING:
    from pathlib import Path

needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is missing: apt-get install tmux"
)

needs_textual = pytest.mark.skipif(
    importlib.util.find_spec("textual") is None, reason="textual is missing: the extra top"
)


def test_one_screen_is_plain_text(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        ended = gpushare("top", "--once", socket=fake.path)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert lines[0] == "gpushare top   2 jobs: 1 running, 1 waiting"
    assert any(line.split()[:4] == ["3", "4000001", "gpt", "running"] for line in lines)
    assert "\njob 5 (vit): waits for 3 (gpt)'s boundary" in ended.stdout
    assert lines[-1].startswith("1 unmanaged process holds 2.1 GiB; gpushare status --unmanaged")
    assert "pid 4242" not in ended.stdout
    assert "\x1b" not in ended.stdout
    assert "q quit" not in ended.stdout


def test_an_output_without_these_characters_gets_others(tmp_path: Path) -> None:
    report = make_report()
    report["devices"][0]["jobs"][0]["name"] = "日本"
    with FakeCoordinator(tmp_path / "sock", report) as fake:
        env = clean_environment(socket=fake.path, config=os.devnull)
        words = [sys.executable, "-m", "gpushare", "top", "--once"]
        ended = subprocess.run(
            words,
            env=env | {"PYTHONIOENCODING": "ascii"},
            capture_output=True,
            timeout=60,
            check=True,
        )
    assert b"3 4000001  ??  " in ended.stdout
    assert b" #####.... resident 1.2 GiB, unused room 336.0 MiB, free 512.0 MiB" in ended.stdout


def test_without_a_terminal_it_says_what_to_do(tmp_path: Path) -> None:
    ended = gpushare("top", socket=f"{tmp_path}/none")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "gpushare: top needs a terminal. For one screen as plain text: gpushare top --once\n"
    )


class Terminal:
    """A tmux of its own."""

    def __init__(self, socket: Path) -> None:
        self._words = ["tmux", "-S", str(socket), "-f", os.devnull]

    def run(self, *words: str, env: dict[str, str] | None = None, check: bool = True) -> str:
        """Runs a command of tmux; what it says."""
        return subprocess.run(
            [*self._words, *words], env=env, stdout=subprocess.PIPE, text=True, check=check
        ).stdout

    def text(self) -> str:
        """What is on it now."""
        return self.run("capture-pane", "-p")

    def wait(self, said: str, key: str = "") -> None:
        """Until it shows that, after a key if one is given."""
        if key:
            self.run("send-keys", key)
        end = time.monotonic() + 30
        while said not in (shown := self.text()):
            assert time.monotonic() < end, f"no {said!r} in:\n{shown}"
            time.sleep(0.05)


@needs_tmux
@needs_textual
def test_on_a_real_terminal(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path / "tmux")
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        env = clean_environment(socket=fake.path, config=os.devnull) | {"LC_ALL": "C.UTF-8"}
        env |= {"COLUMNS": "80", "LINES": "24"}  # as a shell may export them: the terminal is right
        shell = f"sh -c 'echo before; {sys.executable} -m gpushare top; echo ended $?; read line'"
        terminal.run("new-session", "-d", "-x", "90", "-y", "20", shell, env=env)
        try:
            terminal.wait("job 5 (vit): waits for 3")
            assert "before" not in terminal.text()
            terminal.wait("this help", key="h")
            terminal.wait("unmanaged", key="h")  # which the help had covered
            terminal.wait("no job is selected", key="p")
            terminal.run("resize-window", "-x", "130", "-y", "30")
            terminal.wait("PRIORITY")
            terminal.wait("ended 0", key="C-c")
            assert terminal.text().startswith("before\n")  # the terminal is as it was
        finally:
            terminal.run("kill-server", check=False)
