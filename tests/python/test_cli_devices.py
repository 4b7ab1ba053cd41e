"""The command line beside several coordinators: one of each device."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpushare._settings import config
from gpushare._settings.devices import label
from gpushare.cli._targets.coordinators import find_sockets
from gpushare.errors import ConfigError
from tests.python.command_line import needs_daemon
from tests.python.conftest import clean_environment
from tests.python.fake_coordinator import FakeCoordinator, make_job, make_report

if TYPE_CHECKING:
    from collections.abc import Iterator

UUID = "GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
GPU = f"cuda:{UUID}"


def _gpushare(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = clean_environment(config=os.devnull, **more)
    return subprocess.run(
        [sys.executable, "-m", "gpushare", *arguments],
        env={**environment, "XDG_RUNTIME_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _report(device: str, pid: int, *jobs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    report = make_report(**changes)
    report["coordinator"]["pid"] = pid
    report["devices"][0]["device"] = device
    report["devices"][0]["jobs"] = [{**job, "room_bytes": 0} for job in jobs]
    return report


@pytest.fixture
def folder() -> Iterator[Path]:
    """A runtime folder with a short name: a socket's path has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="gs-") as name:
        (Path(name) / "gpushare").mkdir(mode=0o700)
        yield Path(name)


@pytest.fixture
def both(folder: Path) -> Iterator[dict[str, FakeCoordinator]]:
    """Job 3 is on both devices, under two names; each takes the other's for unmanaged."""
    row = {"device": "cpu", "uid": 1, "resident_bytes": 1, "command": ""}
    rows = [{**row, "pid": pid} for pid in (1003, 9, 1004)]
    cpu = _report("cpu", 71, make_job(3, "gpt"), unmanaged=rows[1:])
    gpu = _report(
        GPU, 72, make_job(3, "vit", pid=1004), make_job(4, "bert", pid=1005), unmanaged=rows[:2]
    )
    with (
        FakeCoordinator(folder / "gpushare" / "sock", cpu) as of_cpu,
        FakeCoordinator(folder / "gpushare" / f"{UUID}.sock", gpu) as of_gpu,
    ):
        yield {"cpu": of_cpu, GPU: of_gpu}


def test_status_shows_each_devices_table(folder: Path, both: dict[str, FakeCoordinator]) -> None:
    assert len(both) == 2
    tables = _gpushare(folder, "status").stdout.split("\n\n")
    assert tables[0].startswith("CPU 2.0 GiB ")
    assert tables[1].startswith(f"CUDA {UUID} 2.0 GiB ")
    assert ["gpt" in table for table in tables] == [True, False]
    said = ["1 unmanaged process holds 1 B" in table for table in tables]
    assert said == [True, False], "of two and two processes those that are no jobs, once"
    one = _gpushare(folder, "status", "--device", GPU).stdout
    assert one.startswith(f"CUDA {UUID} ")
    assert "CPU" not in one


def test_top_shows_each_device_and_whose_a_row_is(
    folder: Path, both: dict[str, FakeCoordinator]
) -> None:
    assert len(both) == 2
    ended = _gpushare(folder, "top", "--once")
    assert ended.stderr == ""
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("gpushare top   3 jobs")
    assert lines[1].startswith("0 CPU 2.0 GiB ")
    assert lines[4].startswith("1 CUDA GPU-0a1b2c3d 2.0 GiB ")
    rows = [(line.split()[0], line.split()[1], line.split()[3]) for line in lines[8:11]]
    assert rows == [("0", "3", "gpt"), ("1", "3", "vit"), ("1", "4", "bert")]
    assert lines[-1] == "1 unmanaged process holds 1 B; gpushare status --unmanaged lists them"


def test_json_has_all_devices_in_one_coordinators_form(
    folder: Path, both: dict[str, FakeCoordinator]
) -> None:
    report = json.loads(_gpushare(folder, "status", "--json").stdout)
    assert [device["device"] for device in report["devices"]] == list(both)
    assert report["coordinator"]["pid"] == 71
    assert [each["pid"] for each in report["coordinators"]] == [71, 72]
    assert [row["pid"] for row in report["unmanaged"]] == [9]


@pytest.fixture
def two(folder: Path) -> Iterator[FakeCoordinator]:
    """One coordinator of two devices: job 3 is on cpu:0, job 4 on cpu:1."""
    report = _report("cpu:0", 71, make_job(3, "gpt"))
    report["devices"] += _report("cpu:1", 71, make_job(4, "vit"))["devices"]
    report["unmanaged"] = []
    with FakeCoordinator(folder / "gpushare" / "sock", report) as fake:
        yield fake


@pytest.mark.parametrize("is_socket_said", [True, False])
def test_of_several_devices_of_one_coordinator_the_named_one_is_shown(
    folder: Path, two: FakeCoordinator, is_socket_said: bool
) -> None:
    more = {"socket": two.path} if is_socket_said else {}
    for device, first, jobs in (("", "CPU 0 ", "gpt,vit"), ("cpu:1", "CPU 1 ", "vit")):
        option = ["--device", device] if device else []
        shown = _gpushare(folder, "status", *option, **more).stdout
        assert shown.startswith(first)
        assert ("gpt" in shown) == ("gpt" in jobs)
        listed = _gpushare(folder, "ps", *option, "-o", "name", "--format", "csv,noheader", **more)
        assert listed.stdout.split() == jobs.split(",")
    ended = _gpushare(folder, "why", "gpt", "--device", "cpu:1", **more)
    assert (ended.returncode, ended.stderr.split(".")[0]) == (4, "gpushare: no job is named gpt")
    ended = _gpushare(folder, "pause", "3", "--device", "cpu:1", **more)
    assert (ended.returncode, ended.stderr.split(".")[0]) == (4, "gpushare: there is no job 3")
    assert {request["type"] for request in two.requests} == {"status_request"}
    once = _gpushare(folder, "top", "--once", "--device", "cpu:1", **more).stdout
    assert once.startswith("gpushare top   1 job")


def test_a_device_that_the_coordinator_lacks_is_said(folder: Path, two: FakeCoordinator) -> None:
    ended = _gpushare(folder, "status", "--device", "cpu:7")
    assert ended.returncode == 3
    assert ended.stderr == (
        "gpushare: no coordinator has the device cpu:7. The one that answers has cpu:0, cpu:1\n"
    )
    assert [request["type"] for request in two.requests] == ["status_request"]


@pytest.mark.parametrize("command", [["policy", "rr"], ["coordinator", "stop"]])
def test_one_of_several_devices_is_not_changed_alone(
    folder: Path, two: FakeCoordinator, command: list[str]
) -> None:
    ended = _gpushare(folder, *command, "--device", "cpu:1")
    assert ended.returncode == 4
    assert "has a coordinator in common with other devices (cpu:0, cpu:1)" in ended.stderr
    assert [request["type"] for request in two.requests] == ["status_request"]
    assert _gpushare(folder, *command, "--device", "cpu").returncode == 0


def test_a_coordinator_of_a_gpu_alone_is_found(folder: Path) -> None:
    with FakeCoordinator(folder / "gpushare" / f"{UUID}.sock", _report(GPU, 72)):
        assert _gpushare(folder, "status").stdout.startswith(f"CUDA {UUID} ")


def test_limit_finds_the_jobs_device(folder: Path, both: dict[str, FakeCoordinator]) -> None:
    ended = _gpushare(folder, "limit", "bert", "1GiB")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert both[GPU].requests[-1] | {"v": 1} == {
        "v": 1, "type": "set", "job": 4, "memory_limit_bytes": 1 << 30
    }  # fmt: skip
    ended = _gpushare(folder, "limit", "3", "1GiB")
    assert ended.returncode == 2
    assert f"job 3 is on cpu and on {GPU}: say --device" in ended.stderr
    assert _gpushare(folder, "limit", "3", "1GiB", "--device", "cpu").returncode == 0
    assert both["cpu"].requests[-1]["type"] == "set"


def test_stop_ends_all_or_one(folder: Path, both: dict[str, FakeCoordinator]) -> None:
    ended = _gpushare(folder, "coordinator", "stop")
    assert ended.stdout == f"coordinator of cpu stopped\ncoordinator of {GPU} stopped\n"
    for fake in both.values():
        assert [request["type"] for request in fake.requests] == ["stop"]
    assert _gpushare(folder, "coordinator", "stop", "--device", GPU).returncode == 0
    assert [len(fake.requests) for fake in both.values()] == [1, 2]


def test_one_that_refuses_to_stop_is_said_and_the_others_stop(folder: Path) -> None:
    refusal = {"v": 1, "type": "refused", "reason": "2 jobs are connected"}
    with (
        FakeCoordinator(folder / "gpushare" / "sock", refusal),
        FakeCoordinator(folder / "gpushare" / f"{UUID}.sock", _report(GPU, 72)),
    ):
        ended = _gpushare(folder, "coordinator", "stop")
    assert (ended.returncode, ended.stderr) == (4, "gpushare: 2 jobs are connected\n")
    assert ended.stdout == f"coordinator of {GPU} stopped\n"


def test_of_several_logs_one_is_to_be_named(folder: Path, both: dict[str, FakeCoordinator]) -> None:
    assert len(both) == 2
    (folder / "gpushare" / "coordinator.log").write_text("of the cpu\n")
    assert _gpushare(folder, "coordinator", "log").stdout == "of the cpu\n"
    (folder / "gpushare" / f"{UUID}.log").write_text("of the gpu\n")
    assert _gpushare(folder, "coordinator", "log", "--device", GPU).stdout == "of the gpu\n"
    ended = _gpushare(folder, "coordinator", "log")
    assert ended.returncode == 1
    assert f"logs of several coordinators: cpu ({folder}/gpushare/coordinator.log)" in ended.stderr


def test_a_number_names_no_device_to_a_command(folder: Path) -> None:
    ended = _gpushare(folder, "status", "--device", "cuda:1")
    assert ended.returncode == 2
    assert "--device cuda:1: a command does not know which device that is" in ended.stderr


@pytest.mark.parametrize("command", [["status"], ["top", "--once"]])
def test_without_a_cuda_device_that_is_said(folder: Path, command: list[str]) -> None:
    ended = _gpushare(folder, *command, "--device", "cuda")
    assert ended.returncode == 3
    assert ended.stderr.startswith("gpushare: no CUDA device is shared here. ")


@pytest.mark.parametrize("is_socket_said", [True, False])
def test_no_device_is_called_so(folder: Path, is_socket_said: bool) -> None:
    more = {"socket": f"{folder}/sock"} if is_socket_said else {}
    ended = subprocess.run(
        [sys.executable, "-m", "gpushare", "status", "--device", "gpu0"],
        env=clean_environment(config=os.devnull, **more) | {"XDG_RUNTIME_DIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("gpushare: --device gpu0: a command does not know which device")


@pytest.mark.parametrize("is_option", [True, False])
def test_a_number_names_no_device_to_a_coordinator(folder: Path, is_option: bool) -> None:
    option = ["--device", "cuda:1"] if is_option else []
    ended = _gpushare(folder, "coordinator", "start", *option, device="cuda:1")
    assert ended.returncode == 2
    said = "--device cuda:1" if is_option else "GPUSHARE_DEVICE=cuda:1"
    assert ended.stderr.startswith(f"gpushare: {said}: a command does not know which device")


def test_a_configured_socket_is_the_only_one() -> None:
    found = find_sockets(config.Config(socket="/x/sock"))
    assert [(each.device, each.paths) for each in found] == [("", ["/x/sock"])]
    with pytest.raises(ConfigError, match="--device cuda:1"):
        find_sockets(config.Config(), "cuda:1")


LACKING = ("cpu:1", "cuda", GPU)


@pytest.mark.parametrize("device", LACKING)
@pytest.mark.parametrize(
    "command",
    [
        ("coordinator", "stop"),
        ("coordinator", "stop", "--force"),
        ("policy", "fifo"),
        ("status",),
        ("pause", "gpt"),
        ("limit", "gpt", "1GiB"),
        ("set", "gpt", "--weight", "2"),
        ("set", "gpt", "--policy", "rr"),
    ],
    ids=" ".join,
)
def test_nothing_is_sent_to_a_coordinator_that_lacks_the_device(
    folder: Path, command: tuple[str, ...], device: str
) -> None:
    with FakeCoordinator(folder / "sock", _report("cpu", 71, make_job(3, "gpt"))) as fake:
        ended = _gpushare(folder, *command, "--device", device, socket=fake.path)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr == (
        f"gpushare: no coordinator has the device {device}. The one that answers has cpu\n"
    )
    assert {request["type"] for request in fake.requests} == {"status_request"}


def test_a_kind_of_device_is_not_changed_with_another(folder: Path) -> None:
    report = _report("cpu", 71)
    report["devices"] += _report(GPU, 71)["devices"]
    with FakeCoordinator(folder / "sock", report) as fake:
        ended = _gpushare(folder, "coordinator", "stop", "--device", "cuda", socket=fake.path)
    assert ended.returncode == 4
    assert f"cuda has a coordinator in common with other devices (cpu, {GPU})" in ended.stderr
    assert {request["type"] for request in fake.requests} == {"status_request"}


def test_labels() -> None:
    assert [label("cpu"), label(GPU)] == ["CPU", f"CUDA {UUID}"]


@needs_daemon
def test_start_for_a_cuda_device(folder: Path) -> None:
    socket = folder / "gpushare" / f"{UUID}.sock"
    without = _gpushare(folder, "coordinator", "start", "--device", GPU)
    assert without.returncode == 2
    assert f"the memory of {GPU} is not known here" in without.stderr
    started = _gpushare(folder, "coordinator", "start", "--device", GPU, "--capacity", "64MiB")
    try:
        assert started.stdout == f"coordinator of {GPU} (64.0 MiB) listens at {socket}\n"
        report = json.loads(_gpushare(folder, "status", "--json").stdout)
        assert report["devices"][0]["device"] == GPU
        assert str(socket) in _gpushare(folder, "coordinator", "log").stdout
        second = _gpushare(
            folder, "coordinator", "start", "--device", GPU, "--capacity", "64MiB",
            "--socket", str(folder / "other"),
        )  # fmt: skip
        assert second.returncode == 1
        assert f"another coordinator, pid {report['coordinator']['pid']}, socket " in second.stderr
    finally:
        _gpushare(folder, "coordinator", "stop", "--force", "--device", GPU)


OTHERS = [GPU.replace("0a1b", digits) for digits in ("1111", "2222")]


@pytest.fixture
def of_several(folder: Path) -> Iterator[FakeCoordinator]:
    """A coordinator of two GPUs."""
    report = _report(OTHERS[0], 73, make_job(5, "t5"))
    report["devices"].append(report["devices"][0] | {"device": OTHERS[1], "jobs": []})
    with FakeCoordinator(folder / "gpushare" / "cuda.sock", report) as fake:
        yield fake


@pytest.mark.usefixtures("both", "of_several")
def test_a_coordinator_of_several_gpus_is_one_of_those_that_are_shown(folder: Path) -> None:
    def devices(*words: str) -> list[str]:
        ended = _gpushare(folder, "status", "--json", *words)
        return [row["device"] for row in json.loads(ended.stdout)["devices"]]

    assert devices() == ["cpu", *OTHERS, GPU]
    assert devices("--device", "cuda") == [*OTHERS, GPU]
    assert devices("--device", OTHERS[1]) == [OTHERS[1]]
    assert devices("--device", GPU) == [GPU], "it has a coordinator of its own"


def test_one_gpu_is_not_stopped_with_others(
    folder: Path, both: dict[str, FakeCoordinator], of_several: FakeCoordinator
) -> None:
    refused = _gpushare(folder, "coordinator", "stop", "--device", OTHERS[0])
    assert (refused.returncode, refused.stdout) == (4, "")
    assert f"has a coordinator in common with other devices ({', '.join(OTHERS)})" in refused.stderr
    assert _gpushare(folder, "coordinator", "stop", "--device", GPU).returncode == 0
    assert [request["type"] for request in both[GPU].requests] == ["stop"]
    assert "stop" not in [request["type"] for request in of_several.requests]


def test_the_log_of_all_gpus_is_found_when_their_coordinator_has_ended(folder: Path) -> None:
    (folder / "gpushare" / "cuda.log").write_text("of all\n")
    for device in ("cuda", GPU):
        assert _gpushare(folder, "coordinator", "log", "--device", device).stdout == "of all\n"
