"""`python -m tests.python.forked_demo demo ...`: the demo, whose jobs are forked and have torch."""

from __future__ import annotations

from subprocess import PIPE
from types import SimpleNamespace
from typing import Any

from gpushare.cli.main import main
from gpushare.demo import job_process
from tests.support import forked


def _start(command: list[str], *, env: dict[str, str], text: bool, **streams: Any) -> Any:
    assert text
    return forked.start(command[1:], env, **streams)


if __name__ == "__main__":
    job_process.subprocess = SimpleNamespace(Popen=_start, PIPE=PIPE)  # type: ignore[assignment]
    raise SystemExit(main())
