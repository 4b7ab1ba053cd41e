"""`gpushare ray` without Ray: its options, what an agent would start, and what status says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpushare._settings import config
from gpushare._settings.own_folder import check_own_folder, read_own_file, write_own_file
from gpushare.admin.gpus import Gpu
from gpushare.cli.ray import actors
from gpushare.cli.ray.cluster import Node, connected
from gpushare.cli.ray.state import NodeState, State, lines
from gpushare.errors import CoordinatorUnreachable, GpushareError
from gpushare.integrations.ray_nodes import noticed
from tests.support.command_errors import refusal_of

TOKEN = "a secret of the test"


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
        words = ["ray", command, f"{option}={value}"]
        assert option in refusal_of(words, monkeypatch, capfd), value


@pytest.mark.parametrize("address", ["127.0.0.1:1", "[::1]:1", "ray://127.0.0.1:1", "a:70000"])
def test_an_address_where_nobody_listens_is_said_at_once(address: str) -> None:
    with pytest.raises(CoordinatorUnreachable, match=re.escape(address)), connected(address):
        pass


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
