"""A process that has imported gpushare's command line, and forks one process for each command.

Importing typer takes most of a command's time, and the forked processes save it. The other side is
in test_exit_codes.py. It writes a request a line, a JSON object: {"words": ..., "env": ...,
"stdout": PATH, "stderr": PATH}. The answer is a line with the exit code as `subprocess` has it,
negative for a signal.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from gpushare.cli import main
from gpushare.cli.app import make_app, run_app

PROGRAM = str(Path(main.__file__).parents[1] / "__main__.py")
LIMIT_SECONDS = 60


def run(words: list[str], env: dict[str, str], stdout: str, stderr: str) -> NoReturn:
    """Becomes the process of a command; SIGALRM ends a command that takes too long."""
    signal.alarm(LIMIT_SECONDS)
    for path, number in ((os.devnull, 0), (stdout, 1), (stderr, 2)):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [PROGRAM, *words]
    main.main()
    raise AssertionError("main() returned")


def serve() -> None:
    """Answers requests until stdin ends."""
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        pid = os.fork()
        if pid == 0:
            run(**request)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    make_app()  # imports the modules of all commands
    with contextlib.redirect_stdout(io.StringIO()):
        run_app(["version"])  # typer imports more when it parses arguments
    gc.freeze()  # a collection in a forked process need not copy all pages
    serve()
