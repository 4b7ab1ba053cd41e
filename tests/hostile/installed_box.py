"""A machine of its own on which the service is installed: real users, real paths, no systemd.

It is a mount namespace in which /etc and /var/lib may be changed, and /run and /tmp are empty, but
for the folder of this checkout if it lies there.
What `gpushare admin install` does there is gone with it. Processes and the network are the
machine's. Everybody may enter /root there, since Python or the package may lie below it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.hostile.shared_box import DAEMON
from tests.hostile.unit_runner import UnitRunner

UNIT = "/etc/systemd/system/gpushared@.service"
PROGRAM = "/var/lib/gpushared"
USERS = ("gs-alice", "gs-bob", "gs-carol")
GROUP = "gs-gpu"
JOB_SECONDS = 120.0

_PROBE = """
set -eu
mount -t tmpfs tmpfs {space}
mkdir {space}/below {space}/new {space}/work {space}/all
layers=lowerdir={space}/below,upperdir={space}/new,workdir={space}/work
mount -t overlay -o $layers overlay {space}/all
"""
"""The kinds of mounts that a box has. A machine where these fail allows no box."""

_MOUNTS = """
set -eu
mount -t tmpfs tmpfs {space}
for name in etc var/lib root; do
  mkdir -p {space}/$name/new {space}/$name/work
  layers=lowerdir=/$name,upperdir={space}/$name/new,workdir={space}/$name/work
  mount -t overlay -o $layers overlay /$name
done
mount -t tmpfs -o mode=755 tmpfs /run
exec 9<{kept}
mount -t tmpfs -o mode=1777 tmpfs /tmp
if [ {kept} != / ]; then
  mkdir {kept}
  mount --no-canonicalize --bind /proc/self/fd/9 {kept}
fi
echo ready
cat
"""


class NoBoxError(Exception):
    """This machine does not allow its user to mount what a box needs."""


class InstalledBox:
    """One such machine, on which nothing is installed at first; `close()` ends all of it."""

    def __init__(self) -> None:
        """Makes the machine and its users.

        Raises:
            NoBoxError: Mounts are not allowed here.
            AssertionError: They are, and the box could not be made all the same.
        """
        self._processes: list[subprocess.Popen[str]] = []
        self._folder = tempfile.mkdtemp(prefix="gpushare-")
        Path(self._folder).chmod(0o755)
        space = Path(self._folder) / "space"
        space.mkdir()
        probe = subprocess.run(
            _in_a_namespace(_PROBE.format(space=space)),
            capture_output=True,
            text=True,
            check=False,
        )
        if probe.returncode != 0:
            shutil.rmtree(self._folder)
            raise NoBoxError(probe.stderr.strip())
        parts = DAEMON.resolve().parts
        kept = f"/tmp/{parts[2]}" if parts[1] == "tmp" else "/"
        script = _MOUNTS.format(space=space, kept=kept)
        self._holder = subprocess.Popen(
            _in_a_namespace(script),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        assert self._holder.stderr is not None
        try:
            is_ready = self._holder.stdout.readline() == "ready\n"
            assert is_ready, self._holder.stderr.read()
            self.run("install", "-m", "755", str(DAEMON), PROGRAM)
            # The box has a copy of /etc. A lock that was there is of a program outside, or of one
            # that was killed, and nobody in the box would ever take it away.
            self.run("sh", "-c", "rm -f /etc/passwd.lock /etc/*shadow.lock /etc/group.lock")
            for user in USERS:
                self.run("useradd", "--no-create-home", user)
        except AssertionError:
            self.close()
            raise

    def close(self) -> None:
        """Ends what runs there, and the holder of the namespace, and with it the mounts."""
        for process in self._processes:
            if process.returncode is None:
                process.kill()
                process.communicate()
        self._holder.communicate()
        shutil.rmtree(self._folder)

    def enter(self, command: Sequence[str]) -> list[str]:
        """Returns the same command inside."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--", *command]

    def run(self, *command: str, is_checked: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs a command there as root."""
        ended = subprocess.run(
            self.enter(command), capture_output=True, text=True, check=False, timeout=JOB_SECONDS
        )
        assert ended.returncode == 0 or not is_checked, ended.stderr
        return ended

    def admin(self, *words: str) -> str:
        """Runs `gpushare admin` there, and returns what it printed.

        The command sees no process of the machine. Users of another box that exists meanwhile have
        the same numbers, and the removal of one would be refused because of their processes.
        """
        alone = ("unshare", "--pid", "--fork", "--mount-proc")
        return self.run(*alone, sys.executable, "-m", "gpushare", "admin", *words).stdout

    def install(self, *more: str) -> str:
        """Installs the service for the group."""
        options = ["--group", GROUP, "--device", "cpu", "--capacity", "128MiB"]
        return self.admin("install", *options, "--daemon", PROGRAM, *more)

    def unit(self) -> UnitRunner:
        """Returns what runs the installed unit."""
        root = f"/proc/{self._holder.pid}/root"
        return UnitRunner(self.run("cat", UNIT).stdout, "cpu", root, self.enter)

    def gpushare_as(self, user: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs `gpushare` as that user, who has set nothing."""
        return subprocess.run(
            self.enter([*_as_user(user), sys.executable, "-m", "gpushare", *words]),
            env=_environment(),
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=JOB_SECONDS,
        )

    def start_as(self, user: str, script: str) -> subprocess.Popen[str]:
        """Starts a Python program of that user, who has set nothing."""
        process = subprocess.Popen(
            self.enter([*_as_user(user), sys.executable, "-c", script]),
            env=_environment(),
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return process

    def run_as(self, user: str, script: str) -> tuple[str, str]:
        """Returns what a program of that user printed: output and errors."""
        process = self.start_as(user, script)
        return process.communicate(timeout=JOB_SECONDS)


def _in_a_namespace(script: str) -> list[str]:
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]


def _as_user(user: str) -> list[str]:
    return ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]


def _environment() -> dict[str, str]:
    kept = {"PATH", "LD_LIBRARY_PATH"}
    env = {key: value for key, value in os.environ.items() if key in kept}
    return env | {"GPUSHARE_REPORT": "0", "HOME": "/nonexistent"}
