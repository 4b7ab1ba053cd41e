"""A coordinator for several users, and processes of a user who is not its owner."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpushare._coordinator.client import CoordinatorClient
from gpushare.errors import CoordinatorUnreachable
from tests.hostile import process_use

DAEMON = Path(__file__).parents[2] / "python/gpushare/bin/gpushared"
STRANGER = 65534
PATIENCE_SECONDS = 30.0


class SharedBox:
    """A coordinator in the foreground, at a socket that all users of the machine may open."""

    def __init__(self, folder: Path, mode: str, *more: str) -> None:
        """Starts it with 128 MiB."""
        folder.chmod(0o755)
        self.path = str(folder / "sock")
        self.log = folder / "log"
        words = ["--socket", self.path, "--mode", mode, "--capacity", "128MiB"]
        self._words = [*words, "--log-file", str(self.log), "--linger-s", "never", *more]
        self.client = CoordinatorClient([self.path])
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen([str(DAEMON), *self._words])
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.answers():
            assert self._process.poll() is None, "it ended at its start"
            assert time.monotonic() < end, "it does not answer"
            time.sleep(0.01)

    @property
    def pid(self) -> int:
        """The process id of the coordinator."""
        return self._process.pid

    def environment(self) -> dict[str, str]:
        """The settings of a job that uses this coordinator, and ends where it cannot."""
        return {"GPUSHARE_SOCKET": self.path, "GPUSHARE_REQUIRE": "1"}

    def answers(self) -> bool:
        """Whether the coordinator tells its status."""
        try:
            self.client.status()
        except CoordinatorUnreachable:
            return False
        return True

    def num_jobs(self) -> int:
        """How many jobs the coordinator serves."""
        return len(self.jobs())

    def is_alive(self) -> bool:
        """Whether the coordinator's process has not ended."""
        return self._process.poll() is None

    def num_descriptors(self) -> int:
        """How many descriptors the coordinator has open."""
        return process_use.num_descriptors(self.pid)

    def resident_bytes(self) -> int:
        """How much of the coordinator's memory is resident."""
        return process_use.resident_bytes(self.pid)

    def log_bytes(self) -> int:
        """The size of the coordinator's log and of the older log that it has put aside."""
        return sum(file.stat().st_size for file in self.log.parent.glob("log*"))

    def wait_until_it_ends(self) -> int:
        """Waits for an end that the coordinator comes to by itself; its exit code."""
        return self._process.wait(PATIENCE_SECONDS)

    def crash(self) -> None:
        """Kills the coordinator, and starts the next one at the same socket."""
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)
        self._start()

    def jobs(self) -> list[dict[str, Any]]:
        """The rows of all jobs in the coordinator's status."""
        return [job for device in self.client.status()["devices"] for job in device["jobs"]]

    def end(self) -> None:
        """Ends the coordinator, and waits for its end."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE_SECONDS)


@contextlib.contextmanager
def shared_box(*more: str, mode: str = "0666") -> Iterator[SharedBox]:
    """A coordinator that ends with the block; `more` are its options, `mode` is its socket's."""
    folder = Path(tempfile.mkdtemp(prefix="gpushare-"))
    box = SharedBox(folder, mode, *more)
    try:
        yield box
        assert box.is_alive(), box.log.read_text()[-2000:]
    finally:
        box.end()
        shutil.rmtree(folder)


class StrangerProcess:
    """A fork of this process that is another user, where this one is root."""

    def __init__(self, attack: Callable[[], Any]) -> None:
        """Runs `attack` in the fork, which ends when `attack` does."""
        self.pid = os.fork()
        if self.pid != 0:
            return
        code = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(STRANGER)
                os.setuid(STRANGER)
            attack()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def wait(self) -> None:
        """Waits for the end of the process; an attack that failed fails the test."""
        _, status = os.waitpid(self.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, "the attacker has failed, see its output"

    def kill(self) -> None:
        """Kills the process; an attack that has ended before fails the test."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "the attacker had ended"


def as_stranger(attack: Callable[[], Any]) -> None:
    """Runs `attack` in a process of another user, and waits for its end."""
    StrangerProcess(attack).wait()
