"""What `gpushare` says of a command line that it refuses."""

from __future__ import annotations

import sys

import pytest

from gpushare.cli import main
from gpushare.cli.exit_code import ExitCode


def refusal_of(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> str:
    """Runs `gpushare WORD...`, and returns the one line that refuses an option."""
    monkeypatch.setattr(sys, "argv", ["gpushare", *words])
    with pytest.raises(SystemExit) as ended:
        main.main()
    out, errors = capfd.readouterr()
    assert (ended.value.code, out) == (ExitCode.USAGE, ""), words
    (line,) = errors.splitlines()
    assert line.isprintable()
    return str(line)
