"""Programs that run beside a campaign: the command line, and hostile peers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from subprocess import PIPE
from typing import Any

from benchmarks.processes import job_environment
from gpushare.cli.exit_code import ExitCode
from tests.support import forked

_ANSWERS = (0, ExitCode.UNREACHABLE, ExitCode.REFUSED)
"""The exit statuses of a command that no coordinator answers, or whose job has just ended."""


@dataclass
class Command:
    """One program."""

    words: list[str]
    process: Any
    allowed: tuple[int, ...]
    """The exit statuses of the program that are no failure."""
    output: list[str] = field(default_factory=list)
    """The program's stdout and stderr, once the reader has ended."""

    def __post_init__(self) -> None:
        """Starts to read what the program says."""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        self.output += self.process.communicate()


class Commands:
    """The programs that run."""

    def __init__(self, env: dict[str, str]) -> None:
        """`env` are gpushare's settings."""
        self._env = job_environment(env)
        self.running: list[Command] = []

    def gpushare(self, *words: str) -> Command:
        """Starts `gpushare WORDS`."""
        return self.start("gpushare", *words, allowed=_ANSWERS)

    def start(self, module: str, *words: str, allowed: tuple[int, ...] = (0,)) -> Command:
        """Starts `python -m MODULE WORDS`."""
        process = forked.start(["-m", module, *words], self._env, stdout=PIPE, stderr=PIPE)
        command = Command([module, *words], process, allowed)
        self.running.append(command)
        return command

    def collect(self) -> Iterator[str]:
        """Yields what was wrong with each program that has ended."""
        for command in [each for each in self.running if each.process.poll() is not None]:
            self.running.remove(command)
            command.reader.join()
            code = command.process.returncode
            if code not in command.allowed:
                yield f"{' '.join(command.words)} ended with {code}: {command.output}"

    def end(self) -> None:
        """Kills the programs."""
        for command in self.running:
            command.process.kill()
