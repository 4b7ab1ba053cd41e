"""The process that keeps gpushared running for an actor of Ray, with a program in its place."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from gpushare._settings.own_folder import write_own_file
from gpushare.cli.ray.keeper import KeeperPlan, Program
from tests.e2e.asking import wait_until
from tests.python.conftest import clean_environment

TOKEN = "a secret of the test"
PATIENCE_SECONDS = 20

# Says its number, and ends when it is told to.
PROGRAM = "import os, sys, time\nopen(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\ntime.sleep(100)"


class Kept:
    """A keeper's process, and what it has started."""

    def __init__(self, folder: Path, *, socket: str = "") -> None:
        self.started = folder / "started"
        self.files = [folder / "own" / "token", folder / "own" / "notice"]
        program = Program(argv=[sys.executable, "-c", PROGRAM, str(self.started)], socket=socket)
        token, notice = map(str, self.files)
        plan = KeeperPlan(
            folder=str(folder / "own"),
            token=TOKEN,
            token_file=token,
            notice_file=notice,
            environment={"A": "b"},
            programs=[program],
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gpushare.cli.ray.keeper"],
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asdict(plan)).encode() + b"\n")
        self.process.stdin.flush()
        self.pid = int(self.process.stdout.readline())

    def pids(self, num: int) -> list[int]:
        """The numbers of the processes that it has started, once there are so many."""
        wait_until(lambda: len(self._numbers()) >= num)
        return self._numbers()

    def _numbers(self) -> list[int]:
        text = self.started.read_text() if self.started.exists() else ""
        return [int(line) for line in text.splitlines()]

    def end(self) -> None:
        """Lets its stdin end, as the end of its agent would, and waits for its end."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            if stream is self.process.stdout:
                stream.read()
            stream.close()
        self.process.wait(PATIENCE_SECONDS)


@contextmanager
def kept(folder: Path, *, socket: str = "") -> Iterator[Kept]:
    keeper = Kept(folder, socket=socket)
    try:
        yield keeper
    finally:
        keeper.end()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_keeper_starts_its_program_again_and_ends_it_with_its_agent(tmp_path: Path) -> None:
    with kept(tmp_path) as keeper:
        (first,) = keeper.pids(1)
        token, notice = keeper.files
        assert token.read_text() == TOKEN
        assert token.stat().st_mode & 0o777 == 0o600
        assert json.loads(notice.read_text()) == {"environment": {"A": "b"}}
        for pid in (keeper.pid, first):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            assert TOKEN.encode() not in words + Path(f"/proc/{pid}/environ").read_bytes()
        assert os.getsid(keeper.pid) == keeper.pid
        os.kill(first, signal.SIGKILL)
        _, second = keeper.pids(2)
    assert not is_alive(second)
    assert not any(path.exists() for path in keeper.files)


def test_a_keeper_that_is_killed_leaves_no_program_behind(tmp_path: Path) -> None:
    with kept(tmp_path) as keeper:
        (pid,) = keeper.pids(1)
        os.kill(keeper.pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid))


def test_a_keeper_leaves_the_files_of_a_later_one(tmp_path: Path) -> None:
    with kept(tmp_path) as keeper:
        keeper.pids(1)
        for path in keeper.files:
            write_own_file(str(path), "of a later one")
    assert [path.read_text() for path in keeper.files] == ["of a later one"] * 2


def test_a_keeper_writes_a_file_again_that_was_removed(tmp_path: Path) -> None:
    with kept(tmp_path) as keeper:
        keeper.pids(1)
        keeper.files[0].unlink()
        wait_until(keeper.files[0].exists)
        assert keeper.files[0].read_text() == TOKEN
    assert not keeper.files[0].exists()


def test_a_keeper_starts_nothing_over_another_coordinator(tmp_path: Path) -> None:
    path = str(tmp_path / "sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.bind(path)
        other.listen()
        with kept(tmp_path, socket=path) as keeper:
            other.accept()[0].close()
            other.accept()[0].close()
            assert not keeper.started.exists()
            other.close()
            keeper.pids(1)
