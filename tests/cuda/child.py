"""Functions of a test module, run in processes on the fake device.

A test calls `start(function, **environment)`. The child imports torch, installs the operators,
calls the function and sends back what it returns, as JSON. In between both can talk::

    def holds_memory(parent):
        tensor = torch.empty(...)
        parent.say(fake.used_bytes())
        parent.hear()

    def test_...(tmp_path):
        child = start(holds_memory, device_file=tmp_path / "device")
        assert child.hear() == ...
        child.say("go on")
        child.result()

A test module must not import torch at its top: its parent has no device.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tests.cuda import fake
from tests.support import forked

_RESULT = "result"
_MESSAGE = "message"


class Parent:
    """The child's side: what it says goes to the test, what it prints to stderr."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def say(self, value: Any, kind: str = _MESSAGE) -> None:
        """Sends a value to Child.hear()."""
        self._channel.write(json.dumps([kind, value]) + "\n")
        self._channel.flush()

    def hear(self) -> Any:
        """Waits for Child.say()."""
        line = sys.stdin.readline()
        if not line:
            sys.exit("the test is gone")
        return json.loads(line)


class Child:
    """The test's side of one process."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self._process = forked.start(words, env, stdin=pipe, stdout=pipe, stderr=pipe)
        self.pid = self._process.pid

    def say(self, value: Any) -> None:
        """Sends a value to Parent.hear()."""
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """Waits for the next value that the child says, before its result."""
        return self._read(_MESSAGE)

    def result(self) -> Any:
        """Waits for the child's end. Returns what its function returned."""
        value = self._read(_RESULT)
        self._process.communicate(timeout=60)
        if self._process.returncode != 0:
            raise AssertionError(f"the child ended with status {self._process.returncode}")
        return value

    def kill(self) -> None:
        """SIGKILL; returns when the process is gone."""
        self._process.kill()
        self._process.communicate()

    def _read(self, wanted: str) -> Any:
        line = self._process.stdout.readline()
        if not line:
            _, errors = self._process.communicate()
            status = self._process.returncode
            raise AssertionError(f"the child is gone (status {status}):\n{errors}")
        kind, value = json.loads(line)
        if kind != wanted:
            raise AssertionError(f"the child said {value!r}, as a {kind}, not a {wanted}")
        return value


def start(function: Callable[..., Any], *arguments: Any, **environment: Any) -> Child:
    """Calls `function(parent, *arguments)` in a process with `fake.environment(**environment)`."""
    words = ["-m", "tests.cuda.child", function.__module__, function.__name__]
    return Child([*words, json.dumps(arguments)], fake.environment(**environment))


def run(function: Callable[..., Any], *arguments: Any, **environment: Any) -> Any:
    """The result of `start()`."""
    return start(function, *arguments, **environment).result()


def main() -> None:
    """The child: module, function and arguments are on the command line."""
    module, function, arguments = sys.argv[1:]
    parent = Parent(sys.stdout)
    sys.stdout = sys.stderr
    fake.install_ops()
    result = getattr(importlib.import_module(module), function)(parent, *json.loads(arguments))
    parent.say(result, _RESULT)
    # A thread of torch's lets go of a backward pass with the GIL after the pass has returned.
    # Before Python 3.14 a process that ends in order at that moment aborts, whoever trains in it.
    os._exit(0)


if __name__ == "__main__":
    main()
