"""``gpushare status`` on a real terminal: width, colours, and the screen of ``--watch``."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from gpushare.cli._status import watch
from tests.python.fake_coordinator import FakeCoordinator, make_report
from tests.python.screen_shapes import SHAPES
from tests.python.terminal_command import TerminalCommand

ENTER, LEAVE = "\x1b[?1049h", "\x1b[?1049l"


@pytest.mark.parametrize("columns", [80, 200])
def test_the_screen_has_the_width_of_the_terminal(tmp_path: Path, columns: int) -> None:
    with (
        FakeCoordinator(tmp_path / "sock", SHAPES["20 jobs"]()) as fake,
        TerminalCommand("status", "--no-color", socket=fake.path, columns=columns) as command,
    ):
        code, text = command.end()
    assert code == 0
    lines = text.splitlines()
    assert max(map(len, lines)) <= columns
    assert ("EPHEMERAL" in text) == (columns == 200)
    assert "\x1b" not in text


def test_a_terminal_has_colours_unless_they_are_not_wanted(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        with TerminalCommand("status", socket=fake.path) as command:
            text = command.end()[1]
        assert "\x1b[32mrunning" in text
        assert "\x1b[33mwaiting" in text
        with TerminalCommand("status", socket=fake.path, NO_COLOR="1") as command:
            assert "\x1b" not in command.end()[1]


@pytest.mark.parametrize("key", [b"q", b"\x1b"])
def test_watch_has_its_own_screen_until_a_key(tmp_path: Path, key: bytes) -> None:
    with (
        FakeCoordinator(tmp_path / "sock", SHAPES["20 jobs"]()) as fake,
        TerminalCommand("status", "--watch", "600", socket=fake.path) as command,
    ):
        command.wait_for(ENTER)
        command.wait_for("q quits")
        command.wait_for("lines more: they need a taller window")
        assert command.modes()[3] != command.modes_before[3], "keys come one by one, unseen"
        command.press(b"x\x1b[A")  # neither an unknown key nor an arrow ends it
        command.resize(200)
        command.wait_for("EPHEMERAL")
        command.wait_for("lines more: they need a taller window")
        command.press(key)
        code, rest = command.end()
        assert code == 0
        assert LEAVE in rest
        assert command.modes() == command.modes_before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_a_signal_leaves_the_terminal_as_it_was(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with (
        FakeCoordinator(tmp_path / "sock", make_report()) as fake,
        TerminalCommand("status", "--watch", "600", socket=fake.path) as command,
    ):
        command.wait_for("--unmanaged lists them")
        command.process.send_signal(number)
        ended, rest = command.end()
        assert ended == code
        assert LEAVE in rest
        assert command.modes() == command.modes_before


def test_a_signal_that_has_come_before_the_wait_ends_it() -> None:
    read, write = os.pipe()
    os.write(write, bytes([signal.SIGWINCH, signal.SIGTERM]))
    with pytest.raises(SystemExit) as raised:
        watch._wait(600, read, has_keys=False)
    assert raised.value.code == 143
    os.close(read)
    os.close(write)


def test_a_suspended_watch_lends_the_terminal_to_the_shell(tmp_path: Path) -> None:
    with (
        FakeCoordinator(tmp_path / "sock", make_report()) as fake,
        TerminalCommand("status", "--watch", "600", socket=fake.path) as command,
    ):
        command.wait_for("--unmanaged lists them")
        command.process.send_signal(signal.SIGTSTP)
        command.wait_for(LEAVE)
        _, status = os.waitpid(command.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert command.modes() == command.modes_before
        command.process.send_signal(signal.SIGCONT)
        command.wait_for(ENTER)
        command.wait_for("--unmanaged lists them")
        assert command.modes() != command.modes_before
        command.press(b"q")
        assert command.end()[0] == 0


def test_an_error_is_said_on_the_screen_from_before(tmp_path: Path) -> None:
    refusal = {"v": 1, "type": "refused", "reason": "not to you"}
    with (
        FakeCoordinator(tmp_path / "sock", make_report(), refusal) as fake,
        TerminalCommand("status", "--watch", "0.1", socket=fake.path) as command,
    ):
        code, text = command.end()
        assert code == 4
        assert "gpushare: not to you" in text.rpartition(LEAVE)[2]
        assert command.modes() == command.modes_before


def test_watch_waits_for_a_coordinator_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "sock"
    with TerminalCommand("status", "--watch", "0.1", socket=str(path)) as command:
        command.wait_for("No coordinator runs now. This goes on when one comes.")
        with FakeCoordinator(path, make_report()):
            command.wait_for("gpt")
        path.unlink()
        command.wait_for("No coordinator runs now.")
        command.press(b"q")
        assert command.end()[0] == 0


def test_a_terminal_without_screens_gets_lines(tmp_path: Path) -> None:
    with (
        FakeCoordinator(tmp_path / "sock", make_report(), make_report(), None) as fake,
        TerminalCommand("status", "--watch", "0.1", socket=fake.path, TERM="dumb") as command,
    ):
        code, text = command.end()
    assert code == 3
    assert (text.count("gpt  "), "\x1b" in text) == (2, False)
