"""`gpushare ray` without Ray: its options, what an agent would start, and its keeper's process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from gpushare._settings import config
from gpushare._settings.own_folder import check_own_folder, read_own_file, write_own_file
from gpushare.admin.gpus import Gpu
from gpushare.cli import main
from gpushare.cli.exit_code import ExitCode
from gpushare.cli.ray import actors
from gpushare.cli.ray.cluster import Node
from gpushare.cli.ray.keeper import KeeperPlan, Program
from gpushare.cli.ray.state import NodeState, State, lines
from gpushare.errors import GpushareError
from gpushare.integrations.ray_nodes import noticed
from tests.python.conftest import clean_environment

TOKEN = "a secret of the test"
PATIENCE_SECONDS = 20


@pytest.mark.parametrize(
    ("command", "option", "values"),
    [
        ("up", "--address", ["", "a b", "10.0.0.1", "10.0.0.1:x", "http://a:1", "a:1\n", "\x1b:1"]),
        ("up", "--port", ["0", "-1", "65536", "x"]),
        ("status", "--address", ["here"]),
        ("down", "--address", ["/tmp/ray"]),
    ],
)
def test_a_wrong_option_is_named_in_one_line(
    command: str,
    option: str,
    values: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for value in values:
        monkeypatch.setattr(sys, "argv", ["gpushare", "ray", command, f"{option}={value}"])
        with pytest.raises(SystemExit) as ended:
            main.main()
        out, errors = capfd.readouterr()
        assert (ended.value.code, out) == (ExitCode.USAGE, ""), value
        (line,) = errors.splitlines()
        assert option in line, value
        assert line.isprintable()


def test_a_node_has_a_coordinator_for_each_gpu_else_one_for_the_cpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(config, "SYSTEM_FOLDER", str(tmp_path / "system"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    gpus: list[Gpu] = []
    monkeypatch.setattr(actors, "find_gpus", lambda: gpus)
    (cpu,) = actors.places(config.Config())
    assert (cpu.device, cpu.socket, cpu.options) == ("cpu", f"{tmp_path}/gpushare/sock", [])
    gpus += [Gpu("cuda:GPU-1", 100), Gpu("cuda:GPU-2", 200)]
    assert [(each.device, each.options) for each in actors.places(config.Config())] == [
        ("cuda:GPU-1", ["--device", "cuda:GPU-1", "--device-memory", "100MiB"]),
        ("cuda:GPU-2", ["--device", "cuda:GPU-2", "--device-memory", "200MiB"]),
    ]
    (named,) = actors.places(config.Config(socket="/x/sock"))
    assert (named.socket, named.options) == ("/x/sock", [])
    with pytest.raises(GpushareError, match="none"):
        actors.places(config.Config(socket="none"))


def test_the_coordinator_of_an_administrator_is_known_by_its_socket(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(config, "SYSTEM_FOLDER", str(tmp_path))
    monkeypatch.setattr(actors, "find_gpus", list)
    (tmp_path / "sock").touch()
    (place,) = actors.places(config.Config())
    assert place.is_of_system
    assert place.socket == f"{tmp_path}/sock"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"environment": []}', '{"environment": {"GPUSHARE_ARBITER": "a"}}'],
)
def test_a_notice_that_is_none_tells_nothing(text: str) -> None:
    assert noticed(text) == {}


def test_a_notice_tells_the_arbiter_and_nothing_else() -> None:
    told = {"GPUSHARE_ARBITER": "tcp:a:1", "GPUSHARE_ARBITER_TOKEN_FILE": "/t"}
    notice = {"environment": {**told, "LD_PRELOAD": "/x"}}
    assert noticed(json.dumps(notice)) == told


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    check_own_folder(str(folder))
    assert folder.stat().st_mode & 0o777 == 0o700
    check_own_folder(str(folder))
    link = tmp_path / "link"
    link.symlink_to(folder)
    folder.chmod(0o770)
    for path in (folder, link):
        with pytest.raises(PermissionError):
            check_own_folder(str(path))


def test_a_file_of_this_user_is_written_whole_and_read_by_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch(mode=0o644)
    write_own_file(str(path), TOKEN)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_own_file(str(path)) == TOKEN
    assert read_own_file(str(tmp_path / "none")) == ""
    assert list(tmp_path.iterdir()) == [path]


# Says its number, and ends when it is told to.
PROGRAM = "import os, sys, time\nopen(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\ntime.sleep(100)"


class Kept:
    """A keeper's process, and what it has started."""

    def __init__(self, folder: Path, *, socket: str = "") -> None:
        self.started = folder / "started"
        self.files = [folder / "own" / "token", folder / "own" / "notice"]
        program = Program(argv=[sys.executable, "-c", PROGRAM, str(self.started)], socket=socket)
        token, notice = map(str, self.files)
        plan = KeeperPlan(
            folder=str(folder / "own"),
            token=TOKEN,
            token_file=token,
            notice_file=notice,
            environment={"A": "b"},
            programs=[program],
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gpushare.cli.ray.keeper"],
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asdict(plan)).encode() + b"\n")
        self.process.stdin.flush()
        self.pid = int(self.process.stdout.readline())

    def pids(self, num: int) -> list[int]:
        """The numbers of the processes that it has started, once there are so many."""
        wait_until(lambda: len(self._numbers()) >= num)
        return self._numbers()

    def _numbers(self) -> list[int]:
        text = self.started.read_text() if self.started.exists() else ""
        return [int(line) for line in text.splitlines()]

    def end(self) -> None:
        """Lets its stdin end, as the end of its agent would, and waits for its end."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            if stream is self.process.stdout:
                stream.read()
            stream.close()
        self.process.wait(PATIENCE_SECONDS)


@contextmanager
def kept(folder: Path, *, socket: str = "") -> Iterator[Kept]:
    keeper = Kept(folder, socket=socket)
    try:
        yield keeper
    finally:
        keeper.end()


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_keeper_starts_its_program_again_and_ends_it_with_its_agent(tmp_path: Path) -> None:
    with kept(tmp_path) as keeper:
        (first,) = keeper.pids(1)
        token, notice = keeper.files
        assert token.read_text() == TOKEN
        assert token.stat().st_mode & 0o777 == 0o600
        assert json.loads(notice.read_text()) == {"environment": {"A": "b"}}
        for pid in (keeper.pid, first):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            assert TOKEN.encode() not in words + Path(f"/proc/{pid}/environ").read_bytes()
        assert os.getsid(keeper.pid) == keeper.pid
        os.kill(first, signal.SIGKILL)
        _, second = keeper.pids(2)
    assert not is_alive(second)
    assert not any(path.exists() for path in keeper.files)


def test_a_keeper_that_is_killed_leaves_no_program_behind(tmp_path: Path) -> None:
    with kept(tmp_path) as keeper:
        (pid,) = keeper.pids(1)
        os.kill(keeper.pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid))


def test_a_keeper_leaves_the_files_of_a_later_one(tmp_path: Path) -> None:
    with kept(tmp_path) as keeper:
        keeper.pids(1)
        for path in keeper.files:
            write_own_file(str(path), "of a later one")
    assert [path.read_text() for path in keeper.files] == ["of a later one"] * 2


def test_a_keeper_writes_a_file_again_that_was_removed(tmp_path: Path) -> None:
    with kept(tmp_path) as keeper:
        keeper.pids(1)
        keeper.files[0].unlink()
        wait_until(keeper.files[0].exists)
        assert keeper.files[0].read_text() == TOKEN
    assert not keeper.files[0].exists()


def test_a_keeper_starts_nothing_over_another_coordinator(tmp_path: Path) -> None:
    path = str(tmp_path / "sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.bind(path)
        other.listen()
        with kept(tmp_path, socket=path) as keeper:
            other.accept()[0].close()
            other.accept()[0].close()
            assert not keeper.started.exists()
            other.close()
            keeper.pids(1)


JOB = {"device": "cpu", "job": 3, "name": "mine", "state": "running", "gang": "ranks-1"}


def _row(**changes: object) -> dict[str, object]:
    row = {"socket": "/s", "device": "cpu", "pid": 7, "is_own": True, "is_of_system": False}
    return {**row, "jobs": [], "warnings": [], **changes}


def test_status_says_for_each_node_what_answers() -> None:
    nodes = [
        NodeState(node=Node("a" * 56, "10.0.0.1", True), coordinators=[_row(jobs=[JOB])]),
        NodeState(node=Node("b" * 56, "10.0.0.2", False), coordinators=[_row(pid=0)]),
        NodeState(node=Node("c" * 56, "10.0.0.3", False), problem="it does not answer"),
        NodeState(
            node=Node("d" * 56, "10.0.0.4", False),
            coordinators=[_row(is_own=False, is_of_system=True, warnings=["be\x1bware"])],
        ),
    ]
    state = State(arbiter={"address": "tcp:a:1", "answers": True, "why": ""}, nodes=nodes)
    assert lines(state) == [
        "arbiter at tcp:a:1",
        "NODE                      AGENT               DEVICE  COORDINATOR                 SOCKET",
        "10.0.0.1 aaaaaaaa (head)  answers             cpu     pid 7                       /s",
        "10.0.0.2 bbbbbbbb         answers             cpu     does not answer             /s",
        "10.0.0.3 cccccccc         it does not answer",
        "10.0.0.4 dddddddd         answers             cpu     pid 7, the administrator's  /s",
        "",
        "NODE                      DEVICE  JOB  NAME  STATE    GANG",
        "10.0.0.1 aaaaaaaa (head)  cpu     3    mine  running  ranks-1",
        "warning: 10.0.0.4 dddddddd: be?ware",
    ]
    assert not state.is_well
    assert state.jobs == ["mine"]
    assert json.loads(json.dumps(state.as_json()))["nodes"][2]["problem"] == "it does not answer"
    del nodes[1:3]
    assert state.is_well
    rank, single = JOB | {"name": "rank"}, JOB | {"name": "single", "gang": ""}
    nodes[0].coordinators = [_row(is_own=False, jobs=[rank, single])]
    nodes[1].coordinators[0]["jobs"] = [rank, single]
    assert state.jobs == ["rank"], "of a coordinator that a rank has started"
    state.arbiter |= {"answers": False, "why": "Connection refused"}
    assert lines(state)[0] == "arbiter at tcp:a:1 does not answer: Connection refused"
    assert not state.is_well
