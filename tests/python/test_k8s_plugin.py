"""The device plugin before a fake kubelet, with fake coordinators."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc", reason="SKIPPED: the device plugin, which needs grpcio")
pytest.importorskip("google.protobuf", reason="SKIPPED: the device plugin, which needs protobuf")

import grpc

from gpushare.cli.k8s import api, devices, serve
from gpushare.cli.k8s.serve import PluginOptions, PluginServer
from gpushare.cli.k8s.slots import slots_of
from gpushare.errors import GpushareError
from tests.python.fake_coordinator import FakeCoordinator, make_report
from tests.support.fake_kubelet import FakeKubelet, health, next_with

SLOTS = dict.fromkeys(slots_of("cpu", 2), "Healthy")
GPU = "cuda:GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
GPU_SLOTS = dict.fromkeys(slots_of(GPU, 2), "Healthy")


def unhealthy(slots: dict[str, str]) -> dict[str, str]:
    return dict.fromkeys(slots, "Unhealthy")


class Node:
    """A folder of the kubelet, one of coordinators, and the plugin."""

    def __init__(self, top: Path) -> None:
        self.plugins = top / "plugins"
        self.run = top / "run"
        self.plugins.mkdir()
        self.run.mkdir()
        self.stop = threading.Event()
        self.error: Exception | None = None
        options = PluginOptions(
            kubelet_folder=str(self.plugins),
            folder=str(self.run),
            resource="gpushare.io/slot",
            slots_per_device=2,
            turn_seconds=0.02,
        )
        self._server = PluginServer(options)
        self.thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        try:
            self._server.run(self.stop)
        except GpushareError as error:
            self.error = error


@pytest.fixture
def node() -> Iterator[Node]:
    top = Path(tempfile.mkdtemp(prefix="gs-k8s-"))  # a socket's path has to be short
    made = Node(top)
    yield made
    made.stop.set()
    if made.thread.ident is not None:
        made.thread.join()
    shutil.rmtree(top)


@pytest.fixture
def kubelet(node: Node) -> Iterator[Callable[..., FakeKubelet]]:
    """kubelet() -> one that starts anew; it is stopped at the end."""
    started: list[FakeKubelet] = []

    def start(**options: Any) -> FakeKubelet:
        for each in started:
            each.stop()
        started.clear()
        started.append(FakeKubelet(node.plugins, **options))
        return started[-1]

    yield start
    for each in started:
        each.stop()


def coordinator_of(node: Node, device: str = "cpu") -> FakeCoordinator:
    report = make_report()
    report["devices"][0]["device"] = device
    name = "sock" if device == "cpu" else f"{device[5:]}.sock"
    answer = {"type": "status_report", "report": json.dumps(report)}
    return FakeCoordinator(node.run / name, answer)


def test_it_registers_and_lists_the_slots_of_each_device(node: Node, kubelet: Any) -> None:
    with coordinator_of(node), coordinator_of(node, GPU):
        started = kubelet()
        node.thread.start()
        request = started.registration()
        assert (request.version, request.endpoint) == ("v1beta1", "gpushare.sock")
        assert request.resource_name == "gpushare.io/slot"
        assert request.options.get_preferred_allocation_available
        assert health(next(started.watch())) == SLOTS | GPU_SLOTS
        assert (node.plugins / "gpushare.sock").stat().st_mode & 0o077 == 0


def test_a_coordinator_that_ends_makes_its_device_unhealthy(node: Node, kubelet: Any) -> None:
    started = kubelet()
    with coordinator_of(node, GPU):
        with coordinator_of(node):
            node.thread.start()
            started.registration()
            stream = started.watch()
            next_with(stream, SLOTS | GPU_SLOTS)
        next_with(stream, unhealthy(SLOTS) | GPU_SLOTS)
        with pytest.raises(grpc.RpcError) as refusal:
            started.allocate(["cpu::0"])
        assert refusal.value.code() == grpc.StatusCode.UNAVAILABLE
        (node.run / "sock").unlink(missing_ok=True)
        with coordinator_of(node):
            next_with(stream, SLOTS | GPU_SLOTS)


def test_a_gpu_that_the_driver_lost_is_unhealthy(
    node: Node, kubelet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {GPU}
    monkeypatch.setattr(devices.Scout, "_gpus_now", lambda _self: known)
    with coordinator_of(node, GPU):
        started = kubelet()
        node.thread.start()
        started.registration()
        stream = started.watch()
        next_with(stream, GPU_SLOTS)
        known.clear()
        next_with(stream, unhealthy(GPU_SLOTS))


def test_it_registers_again_with_a_kubelet_that_starts_anew(node: Node, kubelet: Any) -> None:
    with coordinator_of(node):
        first = kubelet()
        node.thread.start()
        first.registration()
        assert health(next(first.watch())) == SLOTS
        second = kubelet()
        second.registration()
        assert health(next(second.watch())) == SLOTS


def test_it_waits_for_a_kubelet_that_is_not_there_or_not_ready(node: Node, kubelet: Any) -> None:
    node.thread.start()
    busy = kubelet(refuses=grpc.StatusCode.UNAVAILABLE)
    busy.registration()
    busy.registration()
    assert node.thread.is_alive()
    kubelet().registration()


def test_it_ends_where_the_kubelet_refuses_it(node: Node, kubelet: Any) -> None:
    kubelet(refuses=grpc.StatusCode.INVALID_ARGUMENT)
    node.thread.start()
    node.thread.join(30)
    assert "no such plugin here" in str(node.error)


def test_it_tries_again_where_the_kubelet_hangs(
    node: Node, kubelet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "_PATIENCE_SECONDS", 0.05)
    hanging = kubelet(hangs=True)
    node.thread.start()
    hanging.registration()
    hanging.registration()
    assert node.thread.is_alive()


def test_a_coordinator_that_hangs_has_no_healthy_device(
    node: Node, kubelet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_ANSWER_SECONDS", 0.05)
    with coordinator_of(node), coordinator_of(node, GPU) as ends:
        started = kubelet()
        node.thread.start()
        started.registration()
        stream = started.watch()
        next_with(stream, SLOTS | GPU_SLOTS)
        Path(ends.path).unlink()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as hanging:
            hanging.bind(ends.path)
            hanging.listen()
            next_with(stream, SLOTS | unhealthy(GPU_SLOTS))


def test_it_leaves_the_socket_to_another_plugin_that_serves(node: Node, kubelet: Any) -> None:
    kubelet()
    path = node.plugins / "gpushare.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(path))
        other.listen()
        node.thread.start()
        node.thread.join(30)
        assert "another device plugin of gpushare serves at" in str(node.error)
        assert path.is_socket()


def test_it_takes_the_place_of_a_plugin_that_has_ended(node: Node, kubelet: Any) -> None:
    started = kubelet()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as ended:
        ended.bind(str(node.plugins / "gpushare.sock"))
    node.thread.start()
    started.registration()


def test_it_says_where_it_cannot_listen(node: Node, kubelet: Any) -> None:
    kubelet()
    (node.plugins / "gpushare.sock").write_text("no socket")
    node.thread.start()
    node.thread.join(30)
    assert f"cannot listen at {node.plugins}/gpushare.sock" in str(node.error)


def test_two_pods_get_the_folder_and_the_socket(node: Node, kubelet: Any) -> None:
    with coordinator_of(node):
        started = kubelet()
        node.thread.start()
        started.registration()
        pods = [*started.allocate(["cpu::0"]), *started.allocate(["cpu::1"])]
        for pod in pods:
            (mount,) = pod.mounts
            assert (mount.container_path, mount.host_path) == (str(node.run), str(node.run))
            assert mount.read_only
            assert pod.envs["GPUSHARE_SOCKET"] == str(node.run / "sock")
            assert not pod.devices
        assert len(started.allocate(["cpu::0"], ["cpu::1"])) == 2


@pytest.mark.parametrize("slots", [[], ["cpu::9"], ["\x1b[2J" * 1000], ["cpu::0", "cpu::0"]])
def test_odd_requests_are_refused_and_the_next_one_is_answered(
    node: Node, kubelet: Any, slots: list[str]
) -> None:
    with coordinator_of(node):
        started = kubelet()
        node.thread.start()
        started.registration()
        with pytest.raises(grpc.RpcError) as refusal:
            started.allocate(["cpu::0"], slots)
        assert refusal.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "\x1b" not in refusal.value.details()
        assert started.allocate() == []
        assert len(started.allocate(["cpu::0"])) == 1


def test_it_prefers_the_device_with_most_free_slots(node: Node, kubelet: Any) -> None:
    started = kubelet()
    node.thread.start()
    started.registration()
    free = ["cpu::1", f"{GPU}::0", f"{GPU}::1"]
    make = api.messages.ContainerPreferredAllocationRequest
    requests = [
        make(available_deviceIDs=free, allocation_size=2),
        make(available_deviceIDs=free, allocation_size=2),
        make(available_deviceIDs=[], must_include_deviceIDs=["odd"], allocation_size=-5),
    ]
    request = api.messages.PreferredAllocationRequest(container_requests=requests)
    answer = started.call("GetPreferredAllocation", request)
    chosen = [list(each.deviceIDs) for each in answer.container_responses]
    assert chosen == [[f"{GPU}::0", "cpu::1"], [f"{GPU}::1"], ["odd"]]


def test_messages_have_the_bytes_of_the_public_api() -> None:
    request = api.messages.RegisterRequest(
        version="v1beta1",
        endpoint="e",
        resource_name="r",
        options=api.messages.DevicePluginOptions(get_preferred_allocation_available=True),
    )
    assert request.SerializeToString() == b"\x0a\x07v1beta1\x12\x01e\x1a\x01r\x22\x02\x10\x01"
    mount = api.messages.Mount(container_path="c", host_path="h", read_only=True)
    given = api.messages.ContainerAllocateResponse(envs={"k": "v"}, mounts=[mount])
    assert (
        given.SerializeToString() == b"\x0a\x06\x0a\x01k\x12\x01v\x12\x08\x0a\x01c\x12\x01h\x18\x01"
    )
