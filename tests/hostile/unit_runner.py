"""Runs a unit's service as systemd would, where systemd does not run.

It reads the unit, and does what its user, group, folder, limits and restarts say. What the unit
says of mounts and system calls it cannot do; `systemd-analyze` judges that (tests/python).
"""

from __future__ import annotations

import resource
import shlex
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

PATIENCE_SECONDS = 30.0
MOST_STARTS = 5
NOTIFY_SOCKET = "/run/notify"


def read_service(text: str) -> dict[str, str]:
    """The keys of the section [Service]. The last value of a key counts."""
    values: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values[key] = value
    return values


class UnitRunner:
    """One instance of a template unit, from start() to stop()."""

    def __init__(
        self, text: str, instance: str, root: str, enter: Callable[[Sequence[str]], list[str]]
    ) -> None:
        """Reads the unit.

        `root` is the machine of the test seen from here, and `enter` makes a command into one that
        runs inside.
        """
        self.service = read_service(text)
        self._enter = enter
        words = shlex.split(self.service["ExecStart"].replace("%i", instance).replace("%%", "%"))
        self._command = self._as_user(words)
        self._notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notices.bind(root + NOTIFY_SOCKET)
        Path(root + NOTIFY_SOCKET).chmod(0o777)
        self._is_stopping = False
        self._threads = [threading.Thread(target=each) for each in (self._keep, self._listen)]
        self._ready = threading.Semaphore(0)
        self.num_starts = 0
        self.process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        """The process id of the coordinator, since each program before it replaces itself."""
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Returns when the service says that it is ready, as `systemctl start` does."""
        service = self.service
        assert service["Type"] == "notify"
        for kind, above in (("Runtime", "/run"), ("State", "/var/lib")):
            folder = ["-d", "-m", service[f"{kind}DirectoryMode"], "-o", service["User"]]
            folder += ["-g", service["Group"], f"{above}/{service[f'{kind}Directory']}"]
            subprocess.run(self._enter(["install", *folder]), check=True)
        self._spawn()
        for thread in self._threads:
            thread.start()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Waits until the service says that it is ready, as it does once after each start."""
        assert self._ready.acquire(timeout=PATIENCE_SECONDS), "it does not say that it is ready"

    def stop(self) -> None:
        """Ends the service, as `systemctl stop` does."""
        self._is_stopping = True
        if self.process is not None:
            self.process.terminate()
            for thread in self._threads:
                thread.join(PATIENCE_SECONDS)
                assert not thread.is_alive()
        self._notices.close()

    def _as_user(self, words: list[str]) -> list[str]:
        service = self.service
        assert service["NoNewPrivileges"] == "yes"
        assert service["CapabilityBoundingSet"] == ""
        # In a container root may not raise it.
        limit = min(int(service["LimitNOFILE"]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        command = ["prlimit", f"--nofile={limit}", "setpriv", "--no-new-privs"]
        command += ["--bounding-set=-all", "--inh-caps=-all", "--reuid", service["User"]]
        command += ["--regid", service["Group"], "--init-groups"]
        if service.get("PrivateNetwork") == "yes":
            command = ["unshare", "--net", *command]
        return [*command, *words]

    def _spawn(self) -> None:
        seconds = int(self.service["WatchdogSec"])
        env = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/nonexistent",
            "NOTIFY_SOCKET": NOTIFY_SOCKET,
            "WATCHDOG_USEC": str(seconds * 1_000_000),
        }
        self.process = subprocess.Popen(self._enter(self._command), env=env, text=True)
        self.num_starts += 1

    def _keep(self) -> None:
        """Starts it again as Restart= says."""
        assert self.service["Restart"] == "on-failure"
        final = {0, int(self.service["RestartPreventExitStatus"])}
        while True:
            assert self.process is not None
            code = self.process.wait()
            if self._is_stopping or code in final or self.num_starts == MOST_STARTS:
                self._notices.shutdown(socket.SHUT_RD)
                return
            self._spawn()

    def _listen(self) -> None:
        while notice := self._notices.recv(256).decode():
            if notice == "READY=1":
                self._ready.release()
