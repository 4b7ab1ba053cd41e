"""A coordinator for tests of the command line: a real socket in a thread, with canned answers."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any


def make_report(**changes: Any) -> dict[str, Any]:
    """A coordinator's report with one device, two jobs and a neighbour."""
    report: dict[str, Any] = {
        "schema_version": 1,
        "coordinator": {
            "pid": 77,
            "version": "0.1.0",
            "protocol": 1,
            "socket": "/run/gpushare/sock",
            "is_recovering": False,
        },
        "devices": [
            {
                "device": "cpu",
                "policy": "fair",
                "policies": ["fifo", "rr", "fair"],
                "capacity_bytes": 2 << 30,
                "free_bytes": 1 << 29,
                "switches": 17,
                "last_handover_seconds": 0.0123,
                "busy": 0.97,
                "host_used_bytes": 300 << 20,
                "host_budget_bytes": 4 << 30,
                "switch_loss_allowed": 0.02,
                "lanes": [
                    {"lane": 0, "device": "cpu", "holder": 3, "next": 0, "switch_loss": 0.011}
                ],
                "jobs": [
                    make_job(3, "gpt", state="running", share=0.34, resident_bytes=1_200 << 20),
                    make_job(
                        5,
                        "vit",
                        state="waiting",
                        share=0.33,
                        resident_bytes=0,
                        spilled_bytes=300 << 20,
                        explain="waits for 3 (gpt)'s boundary, asked for it 0.1 s ago, "
                        "at most 0.9 s",
                    ),
                ],
            }
        ],
        "unmanaged": [
            {
                "pid": 4242,
                "device": "cpu",
                "uid": 4_000_000,
                "resident_bytes": 2200 << 20,
                "command": "python x.py",
            }
        ],
        "unmanaged_unreadable": 0,
        "warnings": [],
        "decisions": [],
    }
    return report | changes


def make_job(number: int, name: str, **changes: Any) -> dict[str, Any]:
    """A job's row."""
    job = {
        "job": number,
        "name": name,
        "pid": 1000 + number,
        "uid": 4_000_001,
        "state": "idle",
        "priority": "normal",
        "weight": 1.0,
        "memory_limit_bytes": 0,
        "deadline_seconds": 0.0,
        "share_limit": 0.0,
        "is_at_share_limit": False,
        "is_elastic": False,
        "share": 0.0,
        "iterations": 120,
        "last_stall_seconds": 0.072,
        "iterations_per_second": 2.94,
        "iterations_per_busy_second": 8.66,
        "resident_bytes": 0,
        "spilled_bytes": 0,
        "term": 9,
        "explain": "",
    }
    return job | changes


class FakeCoordinator:
    """Answers each request with the next of its answers; the last one again and again."""

    def __init__(self, path: Path, *answers: dict[str, Any] | bytes | None) -> None:
        """Listens at once. A None answer hangs up; bytes are sent as they are."""
        self.path = str(path)
        self.requests: list[dict[str, Any]] = []
        self._answers = list(answers)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(self.path)
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> FakeCoordinator:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def answer(self, _request: dict[str, Any]) -> dict[str, Any] | bytes | None:
        """The next answer, whatever is asked; a test may have another rule."""
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                request = connection.recv(65536)
                if not request:
                    continue
                self.requests.append(json.loads(request))
                answer = self.answer(self.requests[-1])
                if answer is not None:
                    connection.send(answer if isinstance(answer, bytes) else encode(answer))


def encode(message: dict[str, Any]) -> bytes:
    """A message as it goes over the socket; a report is wrapped into its message."""
    if "schema_version" in message:
        message = {"v": 1, "type": "status_report", "report": json.dumps(message)}
    return json.dumps(message).encode()
