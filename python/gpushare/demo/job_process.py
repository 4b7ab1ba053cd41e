"""The demo's side of one job process: starts it, lets it go, collects what it says."""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from gpushare.demo.errors import DemoError
from gpushare.demo.kernel_memory import is_stopped

_LAST_LINES = 5
_STOP_POLL_SECONDS = 0.001


@dataclass(frozen=True)
class JobEvent:
    """One line of a job."""

    process: JobProcess
    """Who says it."""
    kind: str
    """"ready", "iteration", "done", "out_of_memory", or "ended" when the process is gone."""
    fields: dict[str, Any]
    """What came with it."""


class JobProcess:
    """A running job. Used by one thread, and a thread of its own that reads the job's lines."""

    def __init__(
        self,
        name: str,
        arguments: list[str],
        environment: Mapping[str, str],
        error_path: Path,
        events: queue.Queue[JobEvent],
    ) -> None:
        """Starts the process; it will wait for ``go``.

        Args:
            name: The workload's name.
            arguments: Further arguments of ``gpushare.demo.job``.
            environment: All of the process's environment.
            error_path: Where its standard error goes.
            events: Where its lines go.
        """
        self.name = name
        self.num_iterations = 0
        self.go_ns = 0
        self.has_ended = False
        self.is_killed = False
        self.result: dict[str, Any] | None = None
        self.out_of_memory: str | None = None
        self.figures: dict[str, Any] = {}
        self.reserved_range: tuple[int, int] | None = None
        self._pause_lock = threading.Lock()
        self._error_path = error_path
        with error_path.open("wb") as error_file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gpushare.demo.job", name, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=error_file,
                env=dict(environment),
                text=True,
            )
        self._reader = threading.Thread(target=self._read, args=(events,), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Tells whether the process has not ended."""
        return self._process.poll() is None

    def go(self) -> None:
        """Lets the job train."""
        self.go_ns = time.monotonic_ns()
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def take(self, event: JobEvent) -> None:
        """Notes what an event says.

        Raises:
            DemoError: The process ended without a result, and nobody ended it.
        """
        if event.kind == "ready" and event.fields["reserved_range"] is not None:
            first, size = event.fields["reserved_range"]
            self.reserved_range = (first, size)
        elif event.kind == "iteration":
            self.num_iterations = event.fields["number"]
        elif event.kind == "done":
            self.result = event.fields
            self.figures = event.fields["stats"]
        elif event.kind == "out_of_memory":
            self.out_of_memory = event.fields["text"]
            self.figures = event.fields["stats"]
        elif event.kind == "ended":
            self._take_end()

    def _take_end(self) -> None:
        self.has_ended = True
        is_expected = self.is_killed or self.result is not None or self.out_of_memory is not None
        if not is_expected:
            raise DemoError(
                f"job {self.name} ended with exit code {self._process.wait()}: {self.last_words()}"
            )

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stops the process while the block runs; several threads may ask for that."""
        with self._pause_lock:
            self._process.send_signal(signal.SIGSTOP)
            try:
                self._wait_until_stopped()
                yield
            finally:
                self._process.send_signal(signal.SIGCONT)

    def _wait_until_stopped(self) -> None:
        # A signal is delivered when the process is next scheduled, which on a busy machine is late.
        while self.is_alive() and not is_stopped(self.pid):
            time.sleep(_STOP_POLL_SECONDS)

    def last_words(self) -> str:
        """Returns the end of its standard error."""
        lines = self._error_path.read_text(errors="replace").strip().splitlines()
        return "\n".join(lines[-_LAST_LINES:]) or "it said nothing"

    def kill(self) -> None:
        """Ends the process at once, if it has not ended, and waits for its end."""
        self.is_killed = True
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                _close(stream)

    def _read(self, events: queue.Queue[JobEvent]) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            fields = _parse_line(line)
            if fields is not None:
                events.put(JobEvent(self, fields.pop("event"), fields))
        self._process.wait()
        events.put(JobEvent(self, "ended", {}))


def _parse_line(line: str) -> dict[str, Any] | None:
    """Returns a job's event; None for the last, cut line of a job that was killed."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) and "event" in fields else None


def _close(stream: IO[str]) -> None:
    # Broken: the job is gone with an unread "go"; nothing is lost.
    with contextlib.suppress(BrokenPipeError):
        stream.close()
