"""Commands whose library is not installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.python.conftest import clean_environment

WITHOUT = """
import sys
from importlib import util
from gpushare.cli import main, top

found, missing = util.find_spec, sys.argv[2].split()
util.find_spec = lambda name: None if name in missing else found(name)
top._check_terminal = lambda: None
sys.argv = ["gpushare", *sys.argv[1].split()]
main.main()
"""


@pytest.mark.parametrize(
    ("command", "missing", "said"),
    [
        ("top", "textual", "gpushare top --once"),
        ("exporter", "prometheus_client", "pip install prometheus_client"),
        ("dashboard", "starlette uvicorn", "pip install starlette uvicorn"),
        ("k8s device-plugin", "grpc", "pip install grpcio"),
        ("ray status", "ray", "pip install ray"),
        ("dashboard", "uvicorn", "the dashboard needs uvicorn, which"),
    ],
)
def test_a_command_says_how_to_get_what_it_lacks(command: str, missing: str, said: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", WITHOUT, command, missing],
        env=clean_environment(socket="/nonexistent/sock", config=os.devnull),
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f'pip install "torch-gpushare[{command.split(maxsplit=1)[0]}]"' in line
    assert said in line
