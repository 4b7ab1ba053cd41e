"""Starts Python programs in processes forked from one that has imported torch (see zygote.py).

For tests that start many processes which all import torch. What concerns a new interpreter itself
(`gpushare run`, the order of imports, times of starting) is started by `subprocess`.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]

# Read when a library is loaded, or when torch first allocates: a zygote has these for good, and
# a process that is to have others is started as usual.
_FIXED = ("LD_", "OMP_", "GOMP_", "KMP_", "MKL_", "ATEN_", "TORCH", "PYTORCH_", "CUDA_", "MALLOC_")
_FIXED_NAMES = ("PYTHONHASHSEED", "PYTHONWARNINGS", "FAKECUDA_LIBRARIES")
# Set by torch where it compiles, and read at each use.
_FREE_NAMES = ("TORCHINDUCTOR_CACHE_DIR",)


class ForkedProcess:
    """What `subprocess.Popen` is to a program that it started; `stdin` and the others are texts."""

    def __init__(self, status: int, streams: Sequence[IO[str] | None]) -> None:
        """`status`: the pipe's end that the zygote answers to."""
        self.stdin, self.stdout, self.stderr = streams
        self.returncode: int | None = None
        self._lock = threading.Lock()
        self._status = os.fdopen(status)
        line = self._status.readline()
        if not line:
            raise RuntimeError("the zygote of the tests is gone: what it wrote is above")
        self.pid = int(line)

    def __del__(self) -> None:
        """Closes the pipe; not before, since another thread may wait there."""
        self._status.close()

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for a signal.

        Raises:
            subprocess.TimeoutExpired: It runs on.
        """
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
            with self._lock:  # several threads may wait
                if self.returncode is None:
                    line = self._status.readline()
                    assert line, f"the zygote of process {self.pid} is gone"
                    self.returncode = os.waitstatus_to_exitcode(int(line))
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends it a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, text: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        """Writes the text, closes stdin, waits for the end; what it wrote to stdout and stderr."""
        with ThreadPoolExecutor(2) as readers, self:
            said = [readers.submit(s.read) if s else None for s in (self.stdout, self.stderr)]
            if self.stdin is not None:
                with contextlib.suppress(BrokenPipeError), self.stdin:
                    self.stdin.write(text or "")
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()  # else the readers wait for ever
                raise
            out, errors = (each.result() if each else "" for each in said)
            return out, errors

    def __enter__(self) -> ForkedProcess:
        """It runs already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes its streams and waits for its end."""
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self.wait()


class _Zygote:
    """One zygote: started when it is first needed, ended with this process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.fixed = _fixed_in(environment)
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = str(Path(__file__).with_name("zygote.py"))
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore::UserWarning", script, str(theirs.fileno())],
                # Not gpushare's: a program's own settings are read when it imports gpushare.
                env={k: v for k, v in environment.items() if not k.startswith("GPUSHARE_")},
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                start_new_session=True,
            )

    def start(self, request: dict[str, Any], fds: list[int]) -> None:
        """Forks a process with these for stdin, stdout, stderr and its status."""
        socket.send_fds(self._requests, [json.dumps(request).encode()], fds)

    def close(self) -> None:
        """Ends it, and what it started."""
        self._requests.close()
        self.process.wait()


def _fixed_in(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if (name.startswith(_FIXED) or name in _FIXED_NAMES) and name not in _FREE_NAMES
    }


_zygote: _Zygote | None = None


@atexit.register
def _close_zygote() -> None:
    if _zygote is not None:
        _zygote.close()


def zygote_pid() -> int | None:
    """The process that forks the others, if there is one."""
    return _zygote.process.pid if _zygote is not None else None


def _zygote_for(environment: Mapping[str, str]) -> _Zygote | None:
    """The zygote, if its libraries were loaded under the same variables."""
    global _zygote
    if _zygote is None:
        _zygote = _Zygote(environment)
    return _zygote if _zygote.fixed == _fixed_in(environment) else None


def start(
    words: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: Path = ROOT,
    stdin: int | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
) -> Any:
    """Runs `python WORD...` in a forked process; in a new one if some library must be loaded anew.

    Args:
        words: -m MODULE, -c CODE or a file, and the program's arguments.
        env: Its whole environment.
        cwd: Its folder.
        stdin: PIPE, or None for the null device.
        stdout: PIPE, or a file; None for this process's.
        stderr: The same.

    Returns:
        A ForkedProcess, or a `subprocess.Popen` with texts for streams.
    """
    zygote = _zygote_for(env)
    if zygote is None:
        return subprocess.Popen(
            [sys.executable, "-W", "ignore::UserWarning", *words],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=stdout,
            stderr=stderr,
            text=True,
        )
    with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
        fds: list[int] = []
        streams: list[IO[str] | None] = []
        for number, stream in enumerate((stdin, stdout, stderr)):
            ends = os.pipe() if stream == PIPE else None
            if ends is not None:
                own = os.fdopen(ends[1 - min(number, 1)], "r" if number else "w")
                streams.append(ours.enter_context(own))
                fds.append(ends[min(number, 1)])
                theirs.callback(os.close, fds[-1])
            else:
                streams.append(None)
                fds.append(_descriptor_of(stream, number, theirs))
        status, their_status = os.pipe()
        theirs.callback(os.close, their_status)
        request = {"words": list(words), "env": dict(env), "cwd": str(cwd)}
        zygote.start(request, [*fds, their_status])
        ours.pop_all()
    return ForkedProcess(status, streams)


def _descriptor_of(stream: int | IO[Any] | None, number: int, stack: contextlib.ExitStack) -> int:
    if stream is None and number > 0:
        return number
    if stream is None or stream == subprocess.DEVNULL:
        return stack.enter_context(Path(os.devnull).open("r+b")).fileno()
    return stream if isinstance(stream, int) else stream.fileno()


def run(
    words: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: Path = ROOT,
    text: str = "",
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs `python WORD...` to its end, with that text for stdin; what it wrote, and its exit code.

    Raises:
        subprocess.TimeoutExpired: After `timeout` seconds it is killed.
    """
    process = start(words, env, cwd=cwd, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        out, errors = process.communicate(text, timeout)
    finally:  # also when the test's time is over
        process.kill()
    return subprocess.CompletedProcess(list(words), process.returncode, out, errors)
