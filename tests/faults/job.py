"""One job of a campaign: compared line by line with a run alone, and judged at its end."""

from __future__ import annotations

import contextlib
import json
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any

from tests.faults import training_job
from tests.support import forked


@dataclass(frozen=True)
class Excuse:
    """The harm that a fault may do to a job, while the fault lasts and a little longer."""

    may_end: bool = False
    """The job may end with the exit status of any error, since its own calls were refused."""
    ending_signal: signal.Signals | None = None
    """The job may end by this signal. None: by no signal."""
    unmanaged_words: str | None = None
    """The job may go on unmanaged, if the reason has these words. None: it may not."""
    out_of_memory_words: str | None = None
    """The job may be out of memory, if the error has these words. None: it may not."""

    def allows(self, code: int) -> bool:
        """Whether the job may end with this exit code, which is negative for a signal."""
        if code > 0:
            return self.may_end
        return self.ending_signal is not None and code == -self.ending_signal


def _has(words: str | None, text: str) -> bool:
    return words is not None and words in text


class Job:
    """One job process and what it has said."""

    def __init__(
        self, name: str, words: list[str], env: dict[str, str], expected: list[str], folder: Path
    ) -> None:
        """Starts the job, which is to say the lines `expected`."""
        self.name = name
        self._expected = expected
        self._errors = folder / f"{name}.stderr"
        with self._errors.open("w") as errors:
            self.process = forked.start(words, env, stdout=PIPE, stderr=errors)
        self.num_lines = 0
        self.difference = ""
        self.last: dict[str, Any] = {}
        """The last object that the job said."""
        self.unmanaged = ""
        """Why the job went on unmanaged; "" if it did not."""
        self.offence = ""
        """Something that the job said and no fault excuses; "" if it said nothing such."""
        self.excuses: list[Excuse] = []
        self.is_killed = False
        """Whether the campaign has killed the job."""
        self._last_word = time.monotonic()
        self._num_holds = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process's number."""
        pid: int = self.process.pid
        return pid

    def errors(self) -> str:
        """The end of what the job wrote to stderr."""
        return self._errors.read_text(errors="replace")[-6000:]

    def forget_errors(self) -> None:
        """Removes the file with its stderr."""
        self._errors.unlink()

    def kill(self) -> None:
        """Kills the job, even while it is stopped."""
        self.is_killed = True
        self.process.kill()

    def has_ended(self) -> bool:
        """Whether the job has ended, and all that it said is compared."""
        if self.process.poll() is None:
            return False
        self._reader.join()
        return True

    def hold(self) -> None:
        """Notes that the job is stopped or paused from now on."""
        self._num_holds += 1

    def let_go(self) -> None:
        """Notes the end of one `hold`."""
        self._last_word = time.monotonic()
        self._num_holds -= 1

    def silent_seconds(self) -> float:
        """How long the job has said nothing, though it could go on."""
        is_held = self._num_holds or self.is_killed
        return 0.0 if is_held else time.monotonic() - self._last_word

    def write_stacks(self) -> None:
        """Has the job write its threads' stacks to stderr, unless it has only just started."""
        with contextlib.suppress(OSError, StopIteration):  # it has ended
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
            caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
            if caught >> (signal.SIGUSR1 - 1) & 1:
                self.process.send_signal(signal.SIGUSR1)  # faulthandler

    def problem(self) -> str:
        """A sentence about a wrong end of the job, or a wrong line; "" if there is neither."""
        if self.difference or self.offence:
            return self.difference or self.offence
        code = self.process.returncode
        if code is None or (self.is_killed and code == -signal.SIGKILL):
            return ""
        if code == 0 and self.last.get("done") and self.num_lines == len(self._expected):
            return ""
        if code == training_job.OUT_OF_MEMORY and "out_of_memory" in self.last:
            return ""  # that was excused, else it would be an offence
        if any(excuse.allows(code) for excuse in self.excuses):
            return ""
        return f"it ended with {code} after {self.num_lines} lines and said {self.last}"

    def _read(self) -> None:
        with self.process.stdout as lines:
            for line in lines:
                self._last_word = time.monotonic()
                if not line.endswith("\n"):
                    continue  # it was killed as it wrote
                if line.startswith("{"):
                    self._hear(json.loads(line))
                else:
                    self._compare(line.rstrip("\n"))

    def _hear(self, said: dict[str, Any]) -> None:
        self.last = said
        self.unmanaged = said.get("unmanaged", self.unmanaged)
        excuses = list(self.excuses)
        if "unmanaged" in said and not any(
            _has(e.unmanaged_words, self.unmanaged) for e in excuses
        ):
            self.offence = f"it went on unmanaged: {self.unmanaged}"
        text = said.get("out_of_memory", "")
        if text and not any(e.may_end or _has(e.out_of_memory_words, text) for e in excuses):
            self.offence = f"it is out of memory: {text}"

    def _compare(self, line: str) -> None:
        number = self.num_lines
        self.num_lines += 1
        wanted = self._expected[number] if number < len(self._expected) else "its end"
        if line != wanted and not self.difference:
            self.difference = f"it said {line!r} instead of {wanted!r}"
