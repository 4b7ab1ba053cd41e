"""Forks processes that run Python programs, from one that has imported torch.

Importing torch costs about two seconds of processor time, which a forked process saves. A program
sees stock torch, loaded, as after `import torch`, and gets an ordinary end.

`forked.py` is the other side. It starts this file with a socket's descriptor, and sends a request
for each process: a JSON object {"words", "env", "cwd"} with four descriptors, of stdin, stdout,
stderr and of a pipe. The pipe gets two lines: the process's number, and after its end its status
as waitpid gives it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import types
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 18
NUM_DESCRIPTORS = 4
_OF_A_PROCESS = ("sys", "builtins", "__main__")


class Zygote:
    """Serves until the other end of its socket is closed; then its processes end with it."""

    def __init__(self, requests: socket.socket) -> None:
        """Hears of requests and of processes that end."""
        self._requests = requests
        self._pipes: dict[int, int] = {}
        self._ended, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._selector.register(self._ended, selectors.EVENT_READ)

    def serve(self) -> list[str] | None:
        """Returns in each forked process: what it is to run. Returns None at the end."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._requests:
                    os.read(self._ended, MOST_BYTES)
                    self._say_who_ended()
                    continue
                data, fds, _, _ = socket.recv_fds(self._requests, MOST_BYTES, NUM_DESCRIPTORS)
                if not data:
                    for pid in self._pipes:
                        os.kill(pid, signal.SIGKILL)
                    return None
                request = json.loads(data)
                pid = os.fork()
                if pid == 0:
                    self._become(request, fds)
                    words: list[str] = request["words"]
                    return words
                self._pipes[pid] = fds.pop()
                os.write(self._pipes[pid], f"{pid}\n".encode())
                for fd in fds:
                    os.close(fd)

    def _say_who_ended(self) -> None:
        while self._pipes:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            pipe = self._pipes.pop(pid)
            with contextlib.suppress(BrokenPipeError):  # whoever started it waits no longer
                os.write(pipe, f"{status}\n".encode())
            os.close(pipe)

    def _become(self, request: dict[str, Any], fds: list[int]) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        self._requests.close()
        for standard, fd in enumerate(fds[:3]):
            os.dup2(fd, standard)
        for fd in (*fds, *self._pipes.values(), self._ended):
            os.close(fd)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        path = os.environ.get("PYTHONPATH", "")
        sys.path[:0] = [part for part in path.split(os.pathsep) if part]


def run(words: list[str]) -> None:
    """As `python WORD...` would: -m MODULE, -c CODE or a file, with the program's arguments."""
    kind, *rest = words
    if kind == "-m":
        sys.argv[:] = rest
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.argv[:] = words
        sys.path.insert(0, str(Path(kind).parent))
        runpy.run_path(kind, run_name="__main__")


def _end_quickly() -> None:
    """Has a process leave as they are, at its end, the libraries that it was forked with.

    Python and libc take apart at the end of a process, object by object, all that was loaded. For
    torch that takes a quarter of a second. What a process loads after the fork ends as usual.
    """
    gc.collect()
    gc.freeze()
    kept = {name: module for name, module in sys.modules.items() if name not in _OF_A_PROCESS}
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))  # for good
    atexit.register(lambda: [sys.modules.pop(name, None) for name in kept])
    libc = ctypes.CDLL(None)
    libc.on_exit(libc._exit, None)


def main() -> list[str] | None:
    """What a forked process is to run; nothing in the zygote itself, at its end."""
    sys.path.pop(0)  # this file's folder, which no program expects
    importlib.import_module("torch")
    # What the first step of any optimizer imports, as much again as torch itself.
    importlib.import_module("torch._dynamo")
    # A forked process of another user may not be able to read the folder of Python's library.
    importlib.import_module("resource")
    _end_quickly()
    with socket.socket(fileno=int(sys.argv[1])) as requests:
        return Zygote(requests).serve()


if __name__ == "__main__":
    program = main()
    if program is not None:
        run(program)
