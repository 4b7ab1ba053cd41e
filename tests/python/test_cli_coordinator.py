"""``gpushare coordinator`` with the real daemon, and ``stop`` against a fake one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from gpushare.cli.coordinator import read_log
from tests.python.command_line import needs_daemon
from tests.python.conftest import clean_environment
from tests.python.fake_coordinator import FakeCoordinator


def _gpushare(*arguments: str, socket: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpushare", *arguments],
        env=clean_environment(socket=str(socket), config=os.devnull),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@needs_daemon
def test_start_status_log_stop(tmp_path: Path) -> None:
    socket = tmp_path / "sock"
    started = _gpushare(
        "coordinator", "start", "--capacity", "64MiB", "--policy", "rr", socket=socket
    )
    try:
        assert (started.returncode, started.stdout) == (
            0,
            f"coordinator of cpu listens at {socket}\n",
        )
        device = json.loads(_gpushare("status", "--json", socket=socket).stdout)["devices"][0]
        assert (device["capacity_bytes"], device["policy"]) == (64 << 20, "rr")
        # Other processes of this machine that use torch may be listed below.
        screen = _gpushare("status", socket=socket).stdout.splitlines()
        # The host tier's default size is that of this machine.
        line = r"CPU 64\.0 MiB   free 64\.0 MiB   leased 0%   host 0 B/[\d.]+ \wiB   policy rr"
        assert re.fullmatch(line, screen[0])
        again = _gpushare("coordinator", "start", socket=socket)
        assert again.returncode == 4
        assert "answers at" in again.stderr
        assert f"serves {socket}" in _gpushare("coordinator", "log", socket=socket).stdout
    finally:
        stopped = _gpushare("coordinator", "stop", "--force", socket=socket)
    assert (stopped.returncode, stopped.stdout) == (0, "coordinator stopped\n")
    assert _gpushare("coordinator", "stop", socket=socket).returncode == 3


@needs_daemon
def test_bad_option_names_what_is_allowed(tmp_path: Path) -> None:
    ended = _gpushare("coordinator", "start", "--policy", "best", socket=tmp_path / "sock")
    assert ended.returncode == 2
    assert "allowed: fair, rr, fifo" in " ".join(ended.stderr.split())


def test_refused_stop_is_exit_4(tmp_path: Path) -> None:
    refusal = {"v": 1, "type": "refused", "reason": "2 jobs are connected"}
    with FakeCoordinator(tmp_path / "sock", refusal) as fake:
        ended = _gpushare("coordinator", "stop", socket=Path(fake.path))
    assert (ended.returncode, ended.stderr) == (4, "gpushare: 2 jobs are connected\n")
    assert fake.requests == [{"v": 1, "type": "stop", "force": False}]


def test_no_log_says_where_it_looked(tmp_path: Path) -> None:
    ended = _gpushare("coordinator", "log", socket=tmp_path / "sock")
    assert ended.returncode == 1
    assert f"{tmp_path}/coordinator.log" in ended.stderr


def test_followed_log_yields_what_is_added(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\n")
    lines = read_log(path, follow=True)
    assert next(lines) == "one\n"
    with path.open("a") as file:
        file.write("two\n")
    assert next(lines) == "two\n"
    assert list(read_log(path, follow=False)) == ["one\ntwo\n"]
