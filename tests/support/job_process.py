"""Jobs of the tests: those of the benchmarks, in forked processes."""

from __future__ import annotations

import sys
from subprocess import PIPE
from typing import IO, Any

from benchmarks import processes
from tests.support import forked


class JobProcess(processes.JobProcess):
    """A job as `benchmarks.processes` has it, whose process has torch already."""

    @staticmethod
    def _start(command: list[str], env: dict[str, str], errors: IO[str]) -> Any:
        assert command[0] == sys.executable
        return forked.start(command[1:], env, stdin=PIPE, stdout=PIPE, stderr=errors)
