"""Arbiters of the tests: real processes, with a token of their own."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
from pathlib import Path

from benchmarks.processes import ROOT
from tests.e2e.asking import wait_until

PROGRAM = ROOT / "python" / "gpushare" / "bin" / "gpushared"
PATIENCE_SECONDS = 20.0


class ArbiterProcess:
    """One `gpushared --arbiter`, as a context manager that leaves no process behind."""

    def __init__(
        self, folder: Path, *, listen: str = "127.0.0.1", wrapper: tuple[str, ...] = ()
    ) -> None:
        """Starts it. `wrapper`: a command that runs another, such as in a network namespace."""
        self.folder = folder
        self.token_file = folder / "token"
        self._wrapper = wrapper
        self.write_token(secrets.token_hex(16))
        self._log = folder / "arbiter.log"
        self._listen = f"tcp:{listen}:0"
        self.start()

    def write_token(self, token: str) -> None:
        """Writes the token. This process reads it when it starts, and hosts when they connect."""
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(token)

    def start(self) -> None:
        """Starts it, at the address that it had before, and returns once it listens."""
        self._log.write_text("")
        command = [*self._wrapper, str(PROGRAM), "--arbiter", "--listen", self._listen]
        command += ["--token-file", str(self.token_file), "--log-file", str(self._log)]
        command += ["--log-level", "debug"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: self._listens_at() != "" or self.process.poll() is not None)
        if not (address := self._listens_at()):
            assert self.process.stderr is not None
            raise RuntimeError(f"no arbiter: {self.process.stderr.read()}{self.log()}")
        self._listen = self.address = address

    def _listens_at(self) -> str:
        """Returns the address that it has logged; "": it has not said one yet."""
        found = re.search(r"listens at (tcp:\S+),", self.log())
        return found.group(1) if found else ""

    def kill(self) -> None:
        """Ends it at once, without a word to anybody."""
        os.kill(self.process.pid, signal.SIGKILL)
        self._reap()

    def log(self) -> str:
        """What it has logged since it was started."""
        return self._log.read_text(errors="replace")

    def settings(self) -> dict[str, str]:
        """The settings of a coordinator that has this arbiter."""
        return {"arbiter": self.address, "arbiter_token_file": str(self.token_file)}

    def _reap(self) -> None:
        self.process.wait(PATIENCE_SECONDS)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def __enter__(self) -> ArbiterProcess:
        """Returns the arbiter, which runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it, if it lives."""
        if self.process.poll() is None:
            self.process.terminate()
        self._reap()
