"""The campaign's coordinator: the process that listens at its socket, as the kernel says."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Any

from gpushare._coordinator.client import CoordinatorClient
from gpushare.errors import GpushareError
from tests.hostile import process_use

PATIENCE_SECONDS = 30.0
_PROGRAM = "gpushared"
_ANSWER_SECONDS = 0.3
"""The campaign waits so long for an answer, since the coordinator may be stopped."""


class Coordinator:
    """Whichever process serves the socket now; another one after each restart."""

    def __init__(self, path: Path) -> None:
        """Watches this socket, and starts no coordinator."""
        self.path = path
        self.programs: dict[int, str] = {}
        """The program of each coordinator that was ever seen, by its pid. For the report alone: in
        an hour of faults pids are used again."""
        self.most_descriptors = 0
        self.most_resident_bytes = 0

    def pid(self) -> int | None:
        """The process id of the coordinator; None while there is none."""
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
        """Sends the coordinator a signal; returns its pid, or None if there is none (any more)."""
        pid = self.pid() if pid is None else pid
        if pid is None:
            return None
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return None
        return pid

    def status(self, answer_seconds: float = _ANSWER_SECONDS) -> dict[str, Any]:
        """The coordinator's report; empty if nobody answers soon."""
        try:
            return CoordinatorClient([str(self.path)], answer_seconds).status()
        except GpushareError:
            return {}

    def rows(self) -> list[dict[str, Any]]:
        """The jobs that the coordinator serves."""
        return [row for device in self.status().get("devices", []) for row in device["jobs"]]

    def measure(self) -> None:
        """Notes how many descriptors and how much memory the coordinator holds."""
        pid = self.pid()
        if pid is None:
            return
        with contextlib.suppress(OSError):  # it has ended since
            if Path(f"/proc/{pid}/exe").readlink().name != _PROGRAM:
                return  # a process that has taken its place
            num_descriptors = process_use.num_descriptors(pid)
            self.most_descriptors = max(self.most_descriptors, num_descriptors)
            resident_bytes = process_use.resident_bytes(pid)
            self.most_resident_bytes = max(self.most_resident_bytes, resident_bytes)

    def end(self) -> str:
        """Ends the coordinator in order, now that it has no jobs; what was wrong, or "".

        It refuses while jobs are connected, so its end shows that it has seen the end of each.
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
