"""Coordinators, device plugin and a training process as the pods of a node would run them."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc", reason="SKIPPED: the device plugin, which needs grpcio")
pytest.importorskip("google.protobuf", reason="SKIPPED: the device plugin, which needs protobuf")

from benchmarks.processes import gpushare_command, job_environment, read_status
from gpushare.cli.k8s.slots import slots_of
from tests.e2e.asking import status, wait_until
from tests.support.fake_kubelet import FakeKubelet, next_with

NAMESPACES = ("unshare", "--pid", "--fork", "--mount-proc", "--mount", "--net", "--ipc")
"""What a container has of its own."""
TRAIN = """
import os
import torch
model = torch.nn.Linear(100, 100)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(30):
    optimizer.zero_grad()
    model(torch.randn(8, 100)).square().mean().backward()
    optimizer.step()
folder = os.path.dirname(os.environ["GPUSHARE_SOCKET"])
print(os.getpid() < 100, os.access(folder, os.W_OK), flush=True)
input()
"""
HAS_NAMESPACES = (
    subprocess.run([*NAMESPACES, "true"], check=False, capture_output=True).returncode == 0
)
"""Root has them. Elsewhere the process runs beside the test's, where it has the folder anyway."""
SLOTS = dict.fromkeys(slots_of("cpu", 4), "Healthy")


@pytest.fixture
def top() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gs-k8s-"))  # a socket's path has to be short
    (folder / "run").mkdir()
    (folder / "plugins").mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def processes(top: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The coordinators, and the device plugin: both as their containers start them."""
    folder = ("--folder", str(top / "run"))
    plugin = ("device-plugin", *folder, "--kubelet-folder", str(top / "plugins"))
    settings = {"GPUSHARE_CAPACITY": "256MiB", "GPUSHARE_CONFIG": os.devnull}
    started = [
        subprocess.Popen(gpushare_command("k8s", *words), env=job_environment(settings))
        for words in (("coordinators", "--devices", "cpu", *folder), plugin)
    ]
    yield started
    for each in started:
        each.terminate()
    assert [each.wait(60) for each in started] == [0, 0]


@pytest.fixture
def kubelet(top: Path) -> Iterator[FakeKubelet]:
    made = FakeKubelet(top / "plugins")
    yield made
    made.stop()


def in_pod(mount: Any, command: list[str]) -> list[str]:
    """The command as a container would run it: its own namespaces, the folder read-only."""
    bind = f"mount --bind {mount.host_path} {mount.container_path}"
    again = f"mount -o remount,bind,ro {mount.container_path}"
    return [*NAMESPACES, "sh", "-c", f"{bind} && {again} && {shlex.join(command)}"]


def test_a_process_with_a_slot_is_a_job_of_the_nodes_coordinator(
    top: Path, kubelet: FakeKubelet, processes: Any
) -> None:
    kubelet.registration()
    next_with(kubelet.watch(), SLOTS)
    (pod,) = kubelet.allocate(["cpu::2"])
    (mount,) = pod.mounts
    assert mount.host_path == str(top / "run")
    script = top / "train.py"
    script.write_text(TRAIN)
    command = gpushare_command("run", "--", sys.executable, str(script))
    env = dict(pod.envs)
    settings = env | {"GPUSHARE_REPORT": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        in_pod(mount, command) if HAS_NAMESPACES else command,
        env=job_environment(settings),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as job:
        assert job.stdout is not None
        trained = job.stdout.readline()
        rows = status(env)["devices"][0]["jobs"]
        _, said = job.communicate("end\n", timeout=100)
    assert job.returncode == 0, said
    assert [(row["name"], row["uid"]) for row in rows] == [("train", os.geteuid())]
    assert "30 iterations" in said
    if HAS_NAMESPACES:
        assert trained == "True False\n", "it has the node's numbers, or may write to the folder"
    first = status(env)["coordinator"]["pid"]
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: read_status(env).get("coordinator", {}).get("pid", first) != first)
