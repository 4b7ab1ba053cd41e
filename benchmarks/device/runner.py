"""Runs the parts of the device suite one after the other, so that no part costs another's results.

Each part has a process group and a time limit, and whatever it started is ended before the next one
begins. Results are written when a part begins and when it has ended: an end of the suite itself,
even by SIGKILL, loses at most the part under way.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from os import environ
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any

from benchmarks.device import descendants, results
from benchmarks.device.outcomes import Part
from benchmarks.processes import ROOT

LAST_LINES = 40
END_SECONDS = 10.0
"""The wait for killed processes to be gone. One that hangs in the driver may stay for longer."""


def _read_nothing(_: Part) -> None:
    pass


class Runner:
    """Runs parts and writes their results to a folder, as a context manager.

    While it is entered, this process adopts orphans, and SIGTERM ends it in order: the part under
    way is ended, what it found so far is read, and the results are written.
    """

    def __init__(self, out: Path, command: str, seconds: float, slowness: float = 1.0) -> None:
        """Writes to the folder `out`.

        Args:
            out: For results.json, results.md and log.txt.
            command: What the results name as their origin.
            seconds: For all parts together.
            slowness: All limits of parts are multiplied by this.
        """
        self.out = out
        self.parts: list[Part] = []
        self.notes: list[str] = []
        """Sentences that a reader of the results must know."""
        self.machine: dict[str, Any] = {"device": "not asked yet"}
        self._command = command
        self._deadline = time.monotonic() + seconds
        self._slowness = slowness
        self._log_path = out / "log.txt"
        self._log_path.write_text("")
        self._before: Any = None

    def __enter__(self) -> Runner:
        """Adopts orphans from now on."""
        descendants.adopt_orphans()
        self._before = signal.signal(signal.SIGTERM, _end)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends whatever the parts started and left."""
        descendants.end_all(END_SECONDS)
        signal.signal(signal.SIGTERM, self._before)

    @property
    def is_good(self) -> bool:
        """Returns whether all parts are good."""
        return all(part.is_good for part in self.parts)

    def note(self, text: str) -> None:
        """Adds a note to the results."""
        print(text, flush=True)
        self.notes.append(text)
        self.write()

    def add(self, part: Part) -> Part:
        """Adds a part to the results."""
        self.parts.append(part)
        self.write()
        return part

    def run(
        self,
        name: str,
        command: Sequence[str],
        seconds: float,
        *,
        missing: str = "",
        env: Mapping[str, str] | None = None,
        read: Callable[[Part], None] = _read_nothing,
    ) -> Part:
        """Runs a part, then ends everything that it started.

        Args:
            name: The part's name in the results.
            command: The part's command, which runs in the folder of the repository.
            seconds: The part's limit, if so much is left.
            missing: The reason not to run the part: something that it needs is not there.
            env: Variables that the part sees besides this process's environment.
            read: Takes what the part found from its files into the part, however it ended.
        """
        part = Part(name=name, command=list(command), environment=dict(env or {}))
        left = min(seconds * self._slowness, self._deadline - time.monotonic())
        if missing or left <= 0:
            part.reason = missing or "out of time"
            print(f"{name}: NOT RUN: {part.reason}", flush=True)
            return self.add(part)
        print(f"{name} ...", flush=True)
        part.has_begun = True
        self.add(part)
        begun = time.monotonic()
        try:
            with self._log_path.open("a") as log:
                print(f"\n##### {name}: {' '.join(command)}", file=log, flush=True)
                log_bytes = log.tell()
                self._run_process(part, left, log)
        finally:
            part.seconds = time.monotonic() - begun
            read(part)
            if not part.is_good:
                part.last_lines = self._lines_since(log_bytes)[-LAST_LINES:]
            self.write()
            print(f"{name}: {part.outcome}, {part.seconds:.0f} s", flush=True)
        return part

    def _run_process(self, part: Part, limit: float, log: IO[str]) -> None:
        process = subprocess.Popen(
            part.command,
            cwd=ROOT,
            env={**environ, **part.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=descendants.begin_part,  # noqa: PLW1509  # the suite has no other threads
        )
        try:
            part.exit_status = self._wait(part, process, limit)
        except subprocess.TimeoutExpired:
            part.reason = f"stopped after {limit:.0f} s"
        except BaseException as error:
            part.reason = f"the suite was ended while it ran: {error}"
            raise
        finally:
            if part.exit_status is None:
                process.kill()
                part.exit_status = _wait_for_killed(process)
            part.left_behind = descendants.end_all(END_SECONDS)

    def _wait(self, part: Part, process: subprocess.Popen[bytes], limit: float) -> int:
        """Returns the exit status of a part's process.

        Raises:
            subprocess.TimeoutExpired: The part has not ended after `limit` seconds.
        """
        return process.wait(limit)

    def _lines_since(self, log_bytes: int) -> list[str]:
        with self._log_path.open("rb") as log:
            log.seek(log_bytes)
            return log.read().decode(errors="replace").splitlines()

    def write(self) -> None:
        """Writes both files of results, as things are now."""
        results.write(self.out, self._command, self.machine, self.parts, self.notes)


def _wait_for_killed(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit status, which is -SIGKILL too where the driver keeps the process."""
    try:
        return process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(f"ended by {signal.Signals(number).name}")
