"""A real Slurm on this machine, with the scripts that `gpushare slurm print-config` prints.

Each node is a slurmd of its own, with folders of its own: as hosts that are apart have.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from benchmarks.processes import job_environment, read_status
from tests.e2e.asking import wait_until
from tests.support.ports import free_ports

_PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "munged")
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"

needs_slurm = pytest.mark.skipif(
    os.geteuid() != 0 or any(shutil.which(each, path=_PATH) is None for each in _PROGRAMS),
    reason="SKIPPED: Slurm, which needs root and slurmctld, slurmd, slurm-client and munge",
)

_CONFIG = """\
ClusterName=test
SlurmctldHost={host}
SlurmUser=root
AuthInfo=socket={folder}/munge.sock
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
KillWait=1
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0
SlurmdParameters=config_overrides
"""
_NODE = "NodeName={name} NodeHostname={host} Port={port} CPUs=8 Gres=gpu:1,shard:{shards}\n"
SHARDS = 5
"""Of each node."""


@dataclass(frozen=True)
class SlurmCluster:
    """A Slurm whose nodes share one CPU each."""

    folder: Path
    nodes: tuple[str, ...]

    def run(self, *command: str) -> str:
        """Runs one of Slurm's commands."""
        settings = {"SLURM_CONF": f"{self.folder}/slurm.conf", "PATH": _PATH}
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

    def submit(self, name: str, command: str, *options: str, lines: str = "/dev/null") -> Path:
        """Submits a job whose only step is the command; returns the file of its output.

        Args:
            name: The job's.
            command: What each task runs.
            options: Of sbatch.
            lines: A file or pipe that the first task reads.
        """
        script = self.folder / f"{len(list(self.folder.glob('*.sbatch')))}.sbatch"
        script.write_text(
            f"#!/bin/sh\nexport SLURM_CONF={self.folder}/slurm.conf OMP_NUM_THREADS=1\n"
            f"exec srun {command} <> {lines}\n"
        )
        output = self.folder / "out" / script.with_suffix(".txt").name
        output.touch()
        output.chmod(0o666)
        where = ("-o", str(output), "-D", "/", str(script))
        self.run("sbatch", "-J", name, *options, *where)
        return output

    def wait(self) -> None:
        """Waits until all jobs have ended."""

        def is_idle() -> bool:
            time.sleep(0.1)  # each question is a process, and the jobs need the cores
            return not self.run("squeue", "--noheader").strip()

        wait_until(is_idle)

    def settings_of(self, node: str) -> dict[str, str]:
        """The settings with which commands ask a node's coordinator, and read its accounts."""
        folder = f"{self.folder}/{node}"
        return {"GPUSHARE_SOCKET": f"{folder}/run/sock", "XDG_STATE_HOME": folder}

    def status_of(self, node: str) -> dict[str, Any]:
        """What the coordinator of a node says of itself and its jobs; empty while there is none."""
        return read_status(self.settings_of(node))

    def _configure(self, options: Sequence[str]) -> None:
        folder = self.folder
        (folder / "munge.key").write_bytes(os.urandom(64))
        (folder / "munge.key").chmod(0o600)
        for name in ("state", "out", *self.nodes):
            (folder / name).mkdir()
        (folder / "out").chmod(0o777)
        os.mknod(folder / "gpu0", 0o020666, os.makedev(1, 3))  # Slurm wants a device
        self._write_script("prolog", "export GPUSHARE_CAPACITY=1GiB", "--group=nogroup", *options)
        socket_of_node = f"echo export GPUSHARE_SOCKET={folder}/$SLURMD_NODENAME/run/sock"
        self._write_script("task-prolog", socket_of_node, *options)
        sizes = ("--gpus=1", f"--shards={SHARDS}")
        gres = printed("gres.conf", *sizes).replace("/dev/nvidia0", f"{folder}/gpu0")
        (folder / "gres.conf").write_text(gres)
        ours = printed("slurm.conf", *sizes).replace("/etc/slurm/gpushare_", f"{folder}/")
        host, (port, *ports) = socket.gethostname(), free_ports(1 + len(self.nodes))
        text = ours + _CONFIG.format(host=host, folder=folder, port=port)
        for name, each in zip(self.nodes, ports, strict=True):
            text += _NODE.format(name=name, host=host, port=each, shards=SHARDS)
        text += f"PartitionName=all Nodes={','.join(self.nodes)} Default=YES State=UP\n"
        (folder / "slurm.conf").write_text(text)

    def _write_script(self, part: str, more: str, *options: str) -> None:
        """Writes one of the two scripts, with a line that a real cluster does not need.

        On this machine the nodes have folders of their own in place of the machine's.
        """
        text = printed(part, *options).replace("#!/bin/sh\n", f"#!/bin/sh\n{more}\n", 1)
        folder = f"{self.folder}/$SLURMD_NODENAME"
        for place, here in {
            "/run/gpushare": f"{folder}/run",
            "/var/lib/gpushare-accounts": f"{folder}/gpushare/accounts",
            "/var/log": folder,
        }.items():
            text = text.replace(place, here)
        script = self.folder / f"{part.replace('-', '_')}.sh"
        script.write_text(text)
        script.chmod(0o755)

    def _start(self) -> None:
        files = {"key-file": "key", "socket": "sock", "pid-file": "pid", "log-file": "log"}
        munge = [f"--{option}={self.folder}/munge.{name}" for option, name in files.items()]
        self.run("munged", "--force", *munge, f"--seed-file={self.folder}/munge.seed")
        self.run("slurmctld")
        for name in self.nodes:
            self.run("slurmd", "-N", name)
        ready = ["idle"] * len(self.nodes)
        wait_until(lambda: self.run("sinfo", "--noheader", "-N", "-o", "%T").split() == ready)

    def _end(self) -> None:
        """Ends all jobs, all daemons, and the coordinators that the prolog has started."""
        with suppress(AssertionError, subprocess.TimeoutExpired):
            self.run("scancel", "--full", *self.run("squeue", "--noheader", "-o", "%A").split())
            self.wait()
        pids = [int(each.read_text()) for each in self.folder.glob("**/*.pid")]
        for status in map(self.status_of, self.nodes):
            pids += [status["coordinator"]["pid"]] if "coordinator" in status else []
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


@contextmanager
def slurm_cluster(*nodes: str, options: Sequence[str] = ()) -> Iterator[SlurmCluster]:
    """A cluster that ends with the block.

    Args:
        nodes: Their names.
        options: Of `gpushare slurm print-config`.
    """
    folder = Path(mkdtemp(prefix="gs-slurm-"))  # a socket's path has to be short
    folder.chmod(0o755)
    cluster = SlurmCluster(folder, nodes)
    try:
        cluster._configure(options)
        cluster._start()
        yield cluster
    finally:
        cluster._end()
        shutil.rmtree(folder)


def printed(part: str, *options: str) -> str:
    """What `gpushare slurm print-config` prints as this part."""
    command = [sys.executable, "-m", "gpushare", "slurm", "print-config", part, *options]
    return subprocess.run(
        command, env=job_environment({}), capture_output=True, text=True, check=True
    ).stdout
