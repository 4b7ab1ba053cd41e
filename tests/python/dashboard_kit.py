"""What tests of the dashboard share: the command on a free port, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.python.conftest import clean_environment
from tests.python.exporter_kit import full_job, report_of

LIMIT_SECONDS = 30.0
NASTY = "\x1b[31m<b>\u202e"
"""A name that would steer a terminal, be markup, and turn the direction of writing."""


@dataclass
class Dashboard:
    """One that runs."""

    process: subprocess.Popen[str]
    url: str

    @property
    def token(self) -> str:
        """As the address has it."""
        return urlsplit(self.url).fragment.removeprefix("token=")

    @contextmanager
    def open(
        self, path: str, method: str = "GET", *, body: str | None = None, **headers: str
    ) -> Iterator[http.client.HTTPResponse]:
        """Sends a request as it is; the answer's body may be without end."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=LIMIT_SECONDS)
        try:
            connection.request(method, path, body, headers)
            with connection.getresponse() as answer:
                yield answer
        finally:
            connection.close()

    def ask(self, path: str, method: str = "GET", body: Any = None) -> tuple[int, dict[str, Any]]:
        """Sends a request as the page does; returns the status and the answer."""
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        with self.open(path, method, body=text, Authorization=f"Bearer {self.token}") as answer:
            return answer.status, json.loads(answer.read())

    @contextmanager
    def readings(self) -> Iterator[Iterator[dict[str, Any]]]:
        """The readings of a stream of its own."""
        with self.open("/api/events", Authorization=f"Bearer {self.token}") as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            yield (json.loads(line[6:]) for line in answer if line.startswith(b"data: "))


@contextmanager
def dashboard(socket: str, **environment: str) -> Iterator[Dashboard]:
    """The command on a free port, for that coordinator, with changes of its environment."""
    words = [sys.executable, "-m", "gpushare", "dashboard", "--port", "0"]
    env = clean_environment(socket=socket, config=os.devnull) | environment
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=env, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield Dashboard(process, process.stdout.readline().split()[-1])
        finally:
            process.kill()


def report_at(uptime_seconds: float, *decisions: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A report with a job 3 that has a nasty name, in the form of a present coordinator."""
    job = full_job(3, NASTY, lane=0, **changes)
    report = report_of(job, decisions=[{"device": "cpu", "lane": 0, **each} for each in decisions])
    report["coordinator"]["uptime_seconds"] = uptime_seconds
    return report
