"""The command line on a terminal of its own: a pseudo-terminal of a known size."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from typing import Any

from tests.python.conftest import clean_environment

HANG_SECONDS = 60.0


class TerminalCommand:
    """``gpushare`` on a terminal, as a context manager that leaves no process behind."""

    def __init__(self, *arguments: str, socket: str, columns: int = 80, **settings: str) -> None:
        """Starts it; ``settings`` are further variables, as they are called."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._slave = slave
        self.modes_before = termios.tcgetattr(slave)
        environment = clean_environment(socket=socket, config=os.devnull)
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gpushare", *arguments],
            env={**environment, "TERM": "xterm-256color", **settings},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        self.seen = ""

    def __enter__(self) -> TerminalCommand:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def wait_for(self, text: str) -> str:
        """Reads until the terminal has got this text; returns what came until then."""
        while text not in self.seen:
            assert self._read(HANG_SECONDS), f"{text!r} does not come: {self.seen!r}"
        begin, _, self.seen = self.seen.partition(text)
        return begin + text

    def press(self, keys: bytes) -> None:
        """Presses keys."""
        os.write(self._master, keys)

    def resize(self, columns: int) -> None:
        """Gives the window another width, and tells the command as a terminal does."""
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def end(self) -> tuple[int, str]:
        """Waits for its end; returns the exit code, and what came that was not read yet."""
        code = self.process.wait(HANG_SECONDS)
        while self._read(0.0):
            pass
        return code, self.seen

    def modes(self) -> list[Any]:
        """How the terminal treats keys now."""
        return termios.tcgetattr(self._slave)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if ready:
            self.seen += os.read(self._master, 65536).decode(errors="replace")
        return bool(ready)
