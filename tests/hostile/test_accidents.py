"""Accidents of whoever starts a coordinator: it goes on, or ends with one line."""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from gpushare._coordinator.client import CoordinatorClient
from gpushare.errors import CoordinatorUnreachable
from tests.hostile.shared_box import DAEMON, PATIENCE_SECONDS, shared_box
from tests.support import forked

JOB = """
import contextlib, os, resource, select, socket
import gpushare, torch
from gpushare._coordinator.client import CoordinatorClient
from gpushare.errors import CoordinatorUnreachable
torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
job = gpushare.register(model, optimizer)

def train():
    for _ in range(3):
        model(torch.ones(4, 32)).sum().backward()
        optimizer.step()

train()
path = os.environ["GPUSHARE_SOCKET"]
client = CoordinatorClient([path])
before = client.status()["coordinator"]["pid"]
process = os.pidfd_open(before)
resource.prlimit(before, resource.RLIMIT_AS, (1 << 20, resource.RLIM_INFINITY))
peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
peer.connect(path)
peer.send(b" " * 120_000)
select.select([process], [], [])
report = {"devices": [{"jobs": []}]}
while not report["devices"][0]["jobs"]:
    train()
    with contextlib.suppress(CoordinatorUnreachable):
        report = client.status()
print(job.is_managed, report["coordinator"]["pid"] != before, len(report["devices"][0]["jobs"]))
client.stop(force=True)
"""


def test_a_configuration_without_end_is_refused(tmp_path: Path) -> None:
    """The daemon read /dev/zero until the machine had no memory left."""

    def bound_memory() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    ended = subprocess.run(
        [str(DAEMON), "--socket", str(tmp_path / "s")],
        env={"GPUSHARE_CONFIG": "/dev/zero"},
        preexec_fn=bound_memory,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert (ended.returncode, ended.stderr) == (
        2,
        "gpushared: /dev/zero is a pipe or a device, and no file of settings: name a plain file, "
        "or /dev/null for no settings\n",
    )


def test_a_soft_limit_of_processor_time_ends_no_coordinator() -> None:
    """`ulimit -St` of the shell whose job started the coordinator. The kernel sends this signal."""
    with shared_box() as box:
        os.kill(box.pid, signal.SIGXCPU)
        assert box.answers()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_coordinator_of_another_container_is_not_in_the_way() -> None:
    """It has a socket at the same path, which is another file there, and the network is one."""
    with tempfile.TemporaryDirectory(prefix="gpushare-") as folder:
        path = f"{folder}/s"
        words = [str(DAEMON), "--socket", path, "--capacity", "64MiB", "--linger-s", "never"]
        inside = f"mount -t tmpfs -o mode=700 tmpfs {folder} && exec {shlex.join(words)}"
        unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", inside]
        other = subprocess.Popen(unshare, stderr=subprocess.PIPE, text=True)
        claim = f"gpushare-coordinator cpu {other.pid} {path}"
        while claim not in Path("/proc/net/unix").read_text():
            assert other.poll() is None, other.communicate()[1]
            time.sleep(0.01)
        own = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        pid = None
        while pid is None:
            assert own.poll() is None, own.communicate()[1]
            with contextlib.suppress(CoordinatorUnreachable):
                pid = CoordinatorClient([path]).status()["coordinator"]["pid"]
        assert pid == own.pid
        for process in (own, other):
            process.terminate()
            process.communicate()


def test_a_coordinator_without_memory_ends_with_one_line_and_its_job_goes_on(
    tmp_path: Path,
) -> None:
    """`prlimit --as` on the running process: it ended by std::bad_alloc."""
    script = tmp_path / "job.py"
    script.write_text(JOB)
    env = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_")}
    socket = str(tmp_path / "sock")
    ended = forked.run([str(script)], env | {"GPUSHARE_SOCKET": socket, "GPUSHARE_REPORT": "0"})
    assert ended.stdout == "True True 1\n", ended.stderr
    log = (tmp_path / "coordinator.log").read_text()
    (line,) = (line for line in log.splitlines() if " error " in line)
    assert line.endswith(
        "ends, since the system gives it no more memory: its addresses are limited to 1.0 MiB "
        "(ulimit -v, or LimitAS of its service); its jobs go on, and start the next coordinator"
    )
