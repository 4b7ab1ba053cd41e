"""The process that keeps programs of gpushare running for an actor of Ray, and ends with the actor.

    python -m gpushare.cli.ray.keeper

Ray may end an actor by SIGKILL, and may kill the actor's children with it. The coordinators must
end with their agent, also when the whole cluster is stopped by force, or they would stay on each
node for ever. So the agent starts this process and holds its stdin open. When that ends, the agent
has ended, and this process ends all that it has started. It is no child of the agent, so that Ray
does not kill it before that.

The first line of stdin is a plan (``KeeperPlan``) as JSON. It has the token, which so is on no
command line and in no environment. The only line of stdout is this process's number.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpushare._settings.own_folder import check_own_folder, write_own_file

_LOOK_SECONDS = 0.2
_OTHER_SECONDS = 1.0
"""Between two looks at a socket where another coordinator answers."""
_SHORT_LIFE_SECONDS = 5.0
_MOST_PAUSE_SECONDS = 5.0
_END_SECONDS = 5.0
"""How long a program may take to end before it is killed."""
_PR_SET_PDEATHSIG = 1
_OF_A_SERVICE = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
"""Variables by which a program would report to the service manager that has started Ray."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that is to run all the time."""

    argv: list[str]
    socket: str = ""
    """It is not started while somebody else answers at this path. "": it is started anyway."""


@dataclass(frozen=True, kw_only=True)
class KeeperPlan:
    """What a keeper does."""

    folder: str
    """This user's own folder for the files; it is made if it is not there."""
    token: str
    token_file: str
    notice_file: str = ""
    """Tells jobs of this node their settings (``gpushare.integrations.ray_nodes``). "": none."""
    environment: dict[str, str] = field(default_factory=dict)
    """The settings that the notice tells."""
    programs: list[Program] = field(default_factory=list)

    @staticmethod
    def from_json(text: bytes) -> KeeperPlan:
        """Reads what ``dataclasses.asdict`` of a plan has become as JSON."""
        values: dict[str, Any] = json.loads(text)
        programs = [Program(**each) for each in values.pop("programs")]
        return KeeperPlan(programs=programs, **values)


class _Kept:
    """A program, and its process while it runs."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._not_before = 0.0
        self._pause = _LOOK_SECONDS

    def look(self, now: float) -> None:
        """Starts it if it does not run, unless another answers at its socket."""
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            self._process = None
            is_short = now - self._started < _SHORT_LIFE_SECONDS
            self._pause = min(2 * self._pause, _MOST_PAUSE_SECONDS) if is_short else _LOOK_SECONDS
            self._not_before = now + self._pause
            _say(f"{' '.join(self._program.argv)} has ended with {code}")
        if now < self._not_before:
            return
        if self._program.socket and answers_at(self._program.socket):
            self._not_before = now + _OTHER_SECONDS
            return
        self._started = now
        self._process = subprocess.Popen(
            self._program.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # This process has one thread, so its children may run Python before gpushared.
            preexec_fn=_end_with_parent,  # noqa: PLW1509
        )

    def ask_to_end(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def wait(self) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def answers_at(path: str) -> bool:
    """Whether somebody listens at a coordinator's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(_OTHER_SECONDS)
        try:
            connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True  # its queue is full, or this user may not ask it
    return True


class _KeptFile:
    """A file that is there as long as the keeper."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._text = Path(path), text
        self._inode = 0

    def look(self) -> None:
        """Writes it if it is not there. In /tmp, the system may remove what nobody has read."""
        if self._inode == 0 or not self._path.exists():
            write_own_file(str(self._path), self._text)
            self._inode = self._path.stat().st_ino

    def remove(self) -> None:
        """Removes it, unless the keeper of a later actor has written its own in its place."""
        with suppress(FileNotFoundError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()


def keep(plan: KeeperPlan, stdin: int) -> None:
    """Keeps files and programs until stdin ends, and then ends the programs and removes the files.

    Args:
        plan: Which.
        stdin: A descriptor, from which nothing more comes until its end.
    """
    check_own_folder(plan.folder)
    files = [_KeptFile(plan.token_file, plan.token)]
    if plan.notice_file:
        files.append(_KeptFile(plan.notice_file, json.dumps({"environment": plan.environment})))
    kept = [_Kept(program) for program in plan.programs]
    try:
        while True:
            for file in files:
                file.look()
            for each in kept:
                each.look(time.monotonic())
            if select.select([stdin], [], [], _LOOK_SECONDS)[0]:
                break
    finally:
        for each in kept:
            each.ask_to_end()
        for each in kept:
            each.wait()
        for file in files:
            file.remove()


def _end_with_parent() -> None:
    """Without this a keeper that is killed would leave its programs behind."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _say(text: str) -> None:
    print(f"gpushare: {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Goes to the background, and keeps what the plan says."""
    plan = KeeperPlan.from_json(sys.stdin.buffer.readline())
    if os.fork() != 0:
        os._exit(0)
    os.setsid()
    for name in _OF_A_SERVICE:
        os.environ.pop(name, None)
    print(os.getpid(), flush=True)
    keep(plan, sys.stdin.fileno())


if __name__ == "__main__":
    main()
