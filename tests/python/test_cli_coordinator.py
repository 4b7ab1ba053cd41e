"""``gpushare coordinator`` with the real daemon, and ``stop`` against a fake one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpushare._settings import config
from gpushare.cli.app import run_app
from gpushare.cli.coordinator import _not_one_log, read_log
from tests.python.command_line import needs_daemon
from tests.python.conftest import clean_environment
from tests.python.fake_coordinator import FakeCoordinator

GPU = "cuda:GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


def _gpushare(
    *arguments: str, socket: Path, config: str = os.devnull, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpushare", *arguments],
        env=clean_environment(socket=str(socket), config=config, **variables),
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
            f"coordinator of cpu (64.0 MiB) listens at {socket}\n",
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
        assert again.stderr == (
            f"gpushare: a coordinator of cpu (64.0 MiB) answers at {socket} already, and keeps the "
            "settings that it was started with. To start one with other settings, first: "
            "gpushare coordinator stop\n"
        )
        assert f"serves {socket}" in _gpushare("coordinator", "log", socket=socket).stdout
    finally:
        stopped = _gpushare("coordinator", "stop", "--force", socket=socket)
    assert (stopped.returncode, stopped.stdout) == (0, "coordinator stopped\n")
    assert _gpushare("coordinator", "stop", socket=socket).returncode == 3


@needs_daemon
def test_bad_option_names_what_is_allowed(tmp_path: Path) -> None:
    ended = _gpushare("coordinator", "start", "--policy", "best", socket=tmp_path / "sock")
    assert ended.returncode == 2
    assert "allowed: fair, rr, fifo" in ended.stderr


def test_refused_stop_is_exit_4_in_the_coordinators_words(tmp_path: Path) -> None:
    reason = "1 job is connected. --force stops the coordinator"
    refusal = {"v": 1, "type": "refused", "reason": reason}
    with FakeCoordinator(tmp_path / "sock", refusal) as fake:
        ended = _gpushare("coordinator", "stop", socket=Path(fake.path))
    assert (ended.returncode, ended.stderr) == (4, f"gpushare: {reason}\n")
    assert fake.requests[0] == {"v": 1, "type": "stop", "force": False}


@needs_daemon
@pytest.mark.parametrize("bad", ['class_floor = "x"', 'socket_mode = "999"'])
def test_a_wrong_setting_that_the_coordinator_alone_reads_is_exit_2(
    tmp_path: Path, bad: str
) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f"[coordinator]\n{bad}\n")
    socket = tmp_path / "sock"
    ended = _gpushare("coordinator", "start", socket=socket, config=str(file))
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1), ended.stderr
    assert bad.split(maxsplit=1)[0] in ended.stderr
    assert not socket.exists()


@needs_daemon
def test_a_file_keeps_part_of_the_cpus_capacity_from_jobs(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[device.cpu]\ncapacity = "64MiB"\nreserve = "32MiB"\n')
    socket = tmp_path / "sock"
    started = _gpushare("coordinator", "start", socket=socket, config=str(file))
    try:
        assert started.stdout == f"coordinator of cpu (32.0 MiB) listens at {socket}\n"
        log = _gpushare("coordinator", "log", socket=socket).stdout
        assert "32.0 MiB for jobs, 32.0 MiB kept from them" in log
    finally:
        _gpushare("coordinator", "stop", socket=socket)


NONE = "/nonexistent"
ARBITER = "tcp:127.0.0.1:7070"


@pytest.mark.parametrize(
    ("words", "variables", "file", "said"),
    [
        ("", {"linger": "x"}, "", "GPUSHARE_LINGER: bad value 'x'; allowed: "),
        ("", {"spill_dir": NONE}, "", f"GPUSHARE_SPILL_DIR: bad value '{NONE}'; allowed: a folder"),
        (f"--spill-dir {NONE}", {}, "", f"--spill-dir: bad value '{NONE}'; allowed: a folder"),
        (
            "", {}, f"[host]\nspill_dir = '{NONE}'",
            f"FILE: host.spill_dir: bad value '{NONE}'; allowed: a folder to write to",
        ),
        ("", {"arbiter": ARBITER}, "", f"GPUSHARE_ARBITER: {ARBITER}; say GPUSHARE_ARBITER_TOKEN_"),
        (
            "", {}, f"[coordinator]\narbiter = '{ARBITER}'",
            f"FILE: coordinator.arbiter: {ARBITER}; say coordinator.arbiter_token_file, too, ",
        ),
        (
            "", {"host_ram_budget": "1GiB"}, "",
            "GPUSHARE_HOST_RAM_BUDGET: bad value '1.0 GiB'; allowed: only with a folder for the "
            "rest, GPUSHARE_SPILL_DIR",
        ),
        (
            "--host-ram-budget 1GiB", {}, "",
            "--host-ram-budget: bad value '1.0 GiB'; allowed: only with a folder for the rest, "
            "--spill-dir",
        ),
        (
            "--host-ram-budget 2GiB --spill-dir /tmp", {"host_budget": "1GiB"}, "",
            "--host-ram-budget: bad value '2.0 GiB'; allowed: at most GPUSHARE_HOST_BUDGET, "
            "1.0 GiB, part of which it is",
        ),
        (
            "", {}, f"[log]\nfile = '{NONE}/x.log'",
            f"FILE: log.file: {NONE}/x.log; there is no folder {NONE}",
        ),
        (
            "", {}, "[device.cpu]\ncapacity = '64MiB'\nreserve = '63MiB'",
            "FILE: device.cpu.reserve: bad value '63.0 MiB'; allowed: at least 2 MiB less than the "
            "capacity, 64.0 MiB",
        ),
        (
            f"--device {GPU} --capacity 64MiB", {"reserve": "1GiB"}, "",
            "GPUSHARE_RESERVE: bad value '1.0 GiB'; allowed: at least 2 MiB less than",
        ),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_named_as_it_was_written(
    tmp_path: Path, words: str, variables: dict[str, str], file: str, said: str
) -> None:
    path, socket = tmp_path / "c.toml", tmp_path / "sock"
    path.write_text(file)
    ended = _gpushare(
        "coordinator", "start", *words.split(), socket=socket, config=str(path), **variables
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"gpushare: {said.replace('FILE', str(path))}")
    assert not socket.exists()


Started = Callable[..., list[str]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    """started(words, file, name="value"): with which words `coordinator start` calls gpushared."""

    def start(words: str, file: str, **variables: str) -> list[str]:
        path = tmp_path / "c.toml"
        path.write_text(file)
        env = clean_environment(socket=str(tmp_path / "sock"), config=str(path), **variables)
        monkeypatch.setattr(os, "environ", env)
        commands: list[list[str]] = []

        def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            commands.append(command)
            return subprocess.CompletedProcess(command, 1)

        monkeypatch.setattr(subprocess, "run", run)
        monkeypatch.setattr(config, "daemon_path", lambda: "gpushared")
        run_app(["coordinator", "start", *words.split()])
        return commands[0]

    return start


@pytest.mark.parametrize(
    ("words", "linger", "file", "told"),
    [
        ("", "", "", "never"),
        ("", "1s", "", "1"),
        ("", "", "[coordinator]\nlinger = '2s'", "2"),
        ("--linger 3s", "x", "", "3"),
        ("--linger never", "1s", "", "never"),
    ],
)
def test_a_coordinator_lingers_as_it_is_told_and_by_default_for_ever(
    started: Started, words: str, linger: str, file: str, told: str
) -> None:
    command = started(words, file, linger=linger)
    assert command[command.index("--linger-s") + 1] == told


def test_a_log_that_may_not_be_read_is_exit_1_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "coordinator.log").touch(mode=0o000)
    command = []
    if os.access(tmp_path / "coordinator.log", os.R_OK):
        # Root reads everything by two capabilities. Another user might lack the right to read this
        # Python, whose home can be root's.
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root reads everything, and there is no setpriv")
        command = [setpriv, "--bounding-set=-dac_override,-dac_read_search"]
    words = [sys.executable, "-m", "gpushare", "coordinator", "log"]
    ended = subprocess.run(
        [*command, *words],
        env=clean_environment(socket=str(tmp_path / "sock"), config=os.devnull),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("gpushare: cannot read ")
    assert "permission denied" in line


def test_mistakes_in_a_file_are_said_when_a_coordinator_starts(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[coordinator]\npolcy = 'rr'\nsocket = 'none'\n")
    ended = subprocess.run(
        [sys.executable, "-m", "gpushare", "coordinator", "start"],
        env=clean_environment(config=str(file)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    first, second = ended.stderr.splitlines()
    assert first == (
        f"gpushare: {file}: unknown key coordinator.polcy; did you mean coordinator.policy?"
    )
    assert 'the settings say socket = "none"' in second


def test_no_log_says_where_it_looked(tmp_path: Path) -> None:
    ended = _gpushare("coordinator", "log", socket=tmp_path / "sock")
    assert ended.returncode == 1
    assert f"{tmp_path}/coordinator.log" in ended.stderr


def test_of_a_service_the_journal_has_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = [tmp_path / "coordinator.log"]
    assert "journalctl" not in _not_one_log({}, tried)
    monkeypatch.setattr(config, "SYSTEM_FOLDER", str(tmp_path))
    assert "service: journalctl -u 'gpushared@*'" in _not_one_log({}, tried)


def test_followed_log_yields_what_is_added(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\n")
    lines = read_log(path, follow=True)
    assert next(lines) == "one\n"
    with path.open("a") as file:
        file.write("two\n")
    assert next(lines) == "two\n"
    assert list(read_log(path, follow=False)) == ["one\n", "two\n"]


def test_a_log_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """In /tmp another user may have made the folder of somebody's coordinator, and a log there."""
    path = tmp_path / "log"
    path.write_text("[info] \x1b]0;title\x07\x1b[2J\u202e\n")
    assert list(read_log(path, follow=False)) == ["[info] ?]0;title??[2J?\n"]
