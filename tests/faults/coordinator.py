"""The campaign's coordinator, found by its socket: whoever listens there, as the kernel says."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Any

from gpushare.coordinator_client import CoordinatorClient
from gpushare.errors import GpushareError

PATIENCE_SECONDS = 30.0
_PROGRAM = "gpushared"
_ANSWER_SECONDS = 0.3
"""So long the campaign waits for an answer: the coordinator may be stopped."""


class Coordinator:
    """Whichever process serves the socket now; another one after each restart."""

    def __init__(self, path: Path) -> None:
        """At this socket."""
        self.path = path
        self.programs: dict[int, str] = {}
        """Of all that were ever seen, by their pids."""
        self.most_descriptors = 0
        self.most_resident_bytes = 0

    def pid(self) -> int | None:
        """Its process now; None while there is none."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.setblocking(False)
            try:
                connection.connect(str(self.path))
                size = struct.calcsize("3i")
                said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            except OSError:
                return None
        pid: int = struct.unpack("3i", said)[0]
        if pid not in self.programs:
            with contextlib.suppress(OSError):  # it has ended since
                self.programs[pid] = str(Path(f"/proc/{pid}/exe").readlink())
        return pid

    def signal(self, number: int, pid: int | None = None) -> int | None:
        """Sends it a signal; its pid, or None if there is none (any more)."""
        pid = self.pid() if pid is None else pid
        if pid is None:
            return None
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return None
        return pid

    def status(self, answer_seconds: float = _ANSWER_SECONDS) -> dict[str, Any]:
        """Its report; empty if nobody answers soon."""
        try:
            return CoordinatorClient([str(self.path)], answer_seconds).status()
        except GpushareError:
            return {}

    def rows(self) -> list[dict[str, Any]]:
        """The jobs that it serves."""
        return [row for device in self.status().get("devices", []) for row in device["jobs"]]

    def why(self, name: str) -> str:
        """Its answer to why the job of this name waits."""
        client = CoordinatorClient([str(self.path)], PATIENCE_SECONDS)
        for device in client.status()["devices"]:
            for row in device["jobs"]:
                if row["name"] == name:
                    return str(client.why(row["job"]).get("why"))
        return "it serves no job of that name"

    def measure(self) -> None:
        """Notes what it holds."""
        pid = self.pid()
        if pid not in self.programs:
            return
        with contextlib.suppress(OSError):  # it has ended since
            if not self.programs[pid].endswith(_PROGRAM):
                return  # a process that has taken its place
            descriptors = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
            status = Path(f"/proc/{pid}/status").read_text()
            self.most_descriptors = max(self.most_descriptors, descriptors)
            if found := re.search(r"VmRSS:\s+(\d+) kB", status):
                self.most_resident_bytes = max(self.most_resident_bytes, int(found[1]) * 1024)

    def end(self) -> str:
        """Has it end in order, now that it has no jobs; what was wrong, or "".

        That it refuses while jobs are connected shows that it has seen the end of each.
        """
        pid = self.pid()
        if pid is None:
            return ""
        process = os.pidfd_open(pid)
        try:
            problem = self._ask_to_end()
            if not problem and not select.select([process], [], [], PATIENCE_SECONDS)[0]:
                problem = f"coordinator {pid} has not ended {PATIENCE_SECONDS:g} s after it said so"
            if problem:
                signal.pidfd_send_signal(process, signal.SIGKILL)
                select.select([process], [], [], PATIENCE_SECONDS)
            return problem
        finally:
            os.close(process)

    def _ask_to_end(self) -> str:
        client = CoordinatorClient([str(self.path)], PATIENCE_SECONDS)
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                client.stop(force=False)
            except GpushareError as error:
                if time.monotonic() > end:
                    return f"the coordinator does not end: {error}"
                time.sleep(0.1)
            else:
                return ""
