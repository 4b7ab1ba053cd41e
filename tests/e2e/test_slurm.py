"""What `gpushare slurm print-config` prints, on a real Slurm of one node."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest

from benchmarks.processes import job_environment, read_status
from tests.e2e.asking import wait_until

PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "munged")
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or any(shutil.which(each, path=PATH) is None for each in PROGRAMS),
    reason="SKIPPED: Slurm, which needs root and slurmctld, slurmd, slurm-client and munge",
)

CONFIG = """\
ClusterName=test
SlurmctldHost={host}
SlurmUser=root
AuthInfo=socket={folder}/munge.sock
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SlurmdParameters=config_overrides
NodeName={host} CPUs=8 Gres=gpu:1,shard:4
PartitionName=all Nodes={host} Default=YES State=UP
"""
TRAIN = """
import torch
model = torch.nn.Linear(100, 100)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(30):
    optimizer.zero_grad()
    model(torch.randn(8, 100)).square().mean().backward()
    optimizer.step()
"""


@dataclass(frozen=True)
class Cluster:
    """A Slurm of one node that takes its scripts from `print-config`."""

    folder: Path

    def run(self, *command: str) -> str:
        """Runs one of Slurm's commands."""
        settings = {"SLURM_CONF": f"{self.folder}/slurm.conf", "PATH": PATH}
        done = subprocess.run(
            command,
            env=job_environment(settings),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, name: str, command: str, *options: str) -> Path:
        """Submits a job whose only step is the command; returns the file of its output."""
        script = self.folder / f"{len(list(self.folder.glob('*.sbatch')))}.sbatch"
        script.write_text(
            f"#!/bin/sh\nexport SLURM_CONF={self.folder}/slurm.conf OMP_NUM_THREADS=1\n"
            f"export GPUSHARE_SOCKET={self.folder}/run/sock GPUSHARE_REPORT=1\n"
            f"exec srun {command}\n"
        )
        output = self.folder / "out" / script.with_suffix(".txt").name
        where = ("-o", str(output), "-D", "/", str(script))
        self.run("sbatch", "-J", name, "--gres=shard:2", *options, *where)
        return output

    def wait(self) -> None:
        """Waits until all jobs have ended."""
        wait_until(lambda: not self.run("squeue", "--noheader").strip())


def _printed(part: str, *options: str) -> str:
    command = [sys.executable, "-m", "gpushare", "slurm", "print-config", part, *options]
    return subprocess.run(
        command, env=job_environment({}), capture_output=True, text=True, check=True
    ).stdout


def _free_ports(num: int) -> list[int]:
    opened = [socket.create_server(("", 0)) for _ in range(num)]
    ports = [each.getsockname()[1] for each in opened]
    for each in opened:
        each.close()
    return ports


def _configure(folder: Path) -> None:
    (folder / "munge.key").write_bytes(os.urandom(64))
    (folder / "munge.key").chmod(0o600)
    for name in ("state", "spool", "run", "out"):
        (folder / name).mkdir()
    (folder / "out").chmod(0o777)
    os.mknod(folder / "gpu0", 0o020666, os.makedev(1, 3))  # Slurm wants a device
    for part, name in (("prolog", "prolog.sh"), ("task-prolog", "task_prolog.sh")):
        options = ("--group", "nogroup") if part == "prolog" else ()
        text = _printed(part, *options).replace("/run/gpushare", f"{folder}/run")
        text = text.replace("/var/lib/gpushare-accounts", f"{folder}/accounts")
        (folder / name).write_text(text.replace("/var/log", str(folder)))
        (folder / name).chmod(0o755)
    gres = _printed("gres.conf", "--gpus", "1").replace("/dev/nvidia0", f"{folder}/gpu0")
    (folder / "gres.conf").write_text(gres)
    ours = _printed("slurm.conf", "--gpus", "1").replace("/etc/slurm/gpushare_", f"{folder}/")
    host = socket.gethostname()
    lines = CONFIG.format(host=host, folder=folder, ports=_free_ports(2))
    (folder / "slurm.conf").write_text(ours + lines)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    folder = Path(mkdtemp(prefix="gs-slurm-"))  # a socket's path has to be short
    folder.chmod(0o755)
    _configure(folder)
    made = Cluster(folder)
    files = {"key-file": "key", "socket": "sock", "pid-file": "pid", "log-file": "log"}
    munge = [f"--{option}={folder}/munge.{name}" for option, name in files.items()]
    try:
        made.run("munged", "--force", *munge, f"--seed-file={folder}/munge.seed")
        made.run("slurmctld")
        made.run("slurmd", "-N", socket.gethostname())
        wait_until(lambda: "idle" in made.run("sinfo", "--noheader", "-o", "%T"))
        yield made
    finally:
        _end(folder)


def _end(folder: Path) -> None:
    """Ends all daemons of the cluster, and the coordinator that the prolog has started."""
    pids = [int(each.read_text()) for each in folder.glob("*.pid")]
    status = read_status({"GPUSHARE_SOCKET": f"{folder}/run/sock"})
    pids += [status["coordinator"]["pid"]] if "coordinator" in status else []
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    shutil.rmtree(folder)


def test_jobs_share_under_a_coordinator_that_outlives_them(cluster: Cluster) -> None:
    program = cluster.folder / "train.py"
    program.write_text(TRAIN)
    command = f"{sys.executable} -m gpushare run -- {sys.executable} {program}"
    trained = [cluster.submit(name, command, "--get-user-env") for name in ("first", "a job/2")]
    of_another = ("--uid", "nobody", "--gid", "nogroup", "--array", "7")
    shown = cluster.submit("sweep", "env", *of_another)
    cluster.wait()
    said = [each.read_text() for each in trained]
    assert "gpushare: first.1: " in said[0]
    assert "gpushare: a_job_2.2: " in said[1]
    assert all("30 iterations" in each for each in said)
    environment = dict(line.split("=", 1) for line in shown.read_text().splitlines())
    assert environment["GPUSHARE_NAME"].startswith("sweep.")
    assert environment["GPUSHARE_GROUP"].startswith("sweep.")
    assert (environment["GPUSHARE_WEIGHT"], environment["GPUSHARE_REQUIRE"]) == ("2", "1")
    status = read_status({"GPUSHARE_SOCKET": f"{cluster.folder}/run/sock"})
    assert status["devices"][0]["switches"] >= 1, "one coordinator, started once, had both jobs"
