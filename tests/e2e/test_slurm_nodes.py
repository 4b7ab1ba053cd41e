"""Jobs of several nodes of a real Slurm, which share by what `print-config` prints."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import gpushare_command, job_environment
from tests.e2e.asking import wait_until
from tests.support.ports import free_ports
from tests.support.ranks import digest_of, ranks_of
from tests.support.slurm import SlurmCluster, needs_slurm, printed, slurm_cluster

pytestmark = needs_slurm

NOBODY = 65534
NODES = ("node1", "node2")
MODULE_PATH = f"{job_environment({})['PYTHONPATH']}:{sysconfig.get_path('purelib')}"
STEPS = "--steps=120"
STOCK = {"GPUSHARE_DISABLE": "1"}

# A program that is not started by torchrun says by itself which rank it is.
BY_SRUN = """\
#!/bin/sh
export HOME=/nonexistent PYTHONPATH={modules}
export RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS
exec {python} -m gpushare run -- {python} -m benchmarks.ranks_program \\
  --init file://{folder}/out/store-$SLURM_JOB_ID "$@"
"""
BY_TORCHRUN = """\
#!/bin/sh
export HOME=/nonexistent PYTHONPATH={modules}
exec {python} -m gpushare run -- {python} -m torch.distributed.run --nnodes=2 --nproc-per-node=1 \\
  --node-rank=$SLURM_NODEID --master-addr=127.0.0.1 --master-port={port} \\
  -m benchmarks.ranks_program "$@"
"""


def _python_for_all() -> str:
    """A Python that other users may run, too; "": there is none.

    That of this process may lie in somebody's home.
    """
    code = "from importlib.util import find_spec as find; assert find('torch') and find('gpushare')"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}"):
        try:
            subprocess.run(
                [python, "-c", code],
                env={"PYTHONPATH": MODULE_PATH},
                user=NOBODY,
                extra_groups=[],
                cwd="/",
                capture_output=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    return ""


@contextmanager
def _arbiter(*options: str) -> Iterator[None]:
    """An arbiter that is started by the command of the printed unit."""
    unit = printed("arbiter.service", *options)
    command = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    process = subprocess.Popen(
        shlex.split(command.removeprefix("ExecStart=")), stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SlurmCluster]:
    """Two nodes with a coordinator each, and an arbiter."""
    if not (python := _python_for_all()):
        pytest.skip("SKIPPED: jobs of two users, which need a Python that all users may run")
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text("a secret of this test")
    address = f"tcp:127.0.0.1:{free_ports(1)[0]}"
    options = (f"--arbiter={address}", f"--arbiter-token-file={token}")
    with _arbiter(*options), slurm_cluster(*NODES, options=options) as made:
        for name, text in (("by_srun", BY_SRUN), ("by_torchrun", BY_TORCHRUN)):
            script = made.folder / name
            places = {"modules": MODULE_PATH, "python": python, "folder": made.folder}
            script.write_text(text.format(port=free_ports(1)[0], **places))
            script.chmod(0o755)
        yield made


def _gate(cluster: SlurmCluster, name: str) -> Path:
    """Where the job of that name reads a line before it trains."""
    return cluster.folder / "out" / f"{name}.gate"


def _submit(cluster: SlurmCluster, name: str, command: str, shards: int, *options: str) -> Path:
    gate = _gate(cluster, name)
    os.mkfifo(gate)
    gate.chmod(0o666)
    where = ("-N2", "-n2", f"--gres=shard:{shards}", *options)
    return cluster.submit(name, f"{cluster.folder}/{command} --wait", *where, lines=str(gate))


def _jobs(cluster: SlurmCluster, node: str) -> dict[str, dict[str, Any]]:
    devices = cluster.status_of(node).get("devices", [])
    return {job["name"]: job for each in devices for job in each["jobs"]}


def _history(cluster: SlurmCluster, node: str) -> dict[str, dict[str, Any]]:
    said = subprocess.run(
        gpushare_command("history", "--format=json"),
        env=job_environment(cluster.settings_of(node)),
        capture_output=True,
        text=True,
        check=True,
    )
    return {row["name"]: row for row in json.loads(said.stdout)}


def _digest(output: Path) -> str:
    """What rank 0 says at its end. torchrun may have more to say, when its other half has gone."""
    (last,) = (line for line in output.read_text().splitlines() if line.startswith('{"done"'))
    digest: str = json.loads(last)["digest"]
    return digest


def _digest_alone(store: Path) -> str:
    """What the program computes on stock torch."""
    module = "tests.e2e.ranks_job"
    with ranks_of([STOCK, STOCK], STEPS, "--init", f"file://{store}", module=module) as ranks:
        return digest_of(ranks)


def test_jobs_of_two_nodes_are_gangs_and_a_cancelled_one_harms_no_other(
    cluster: SlurmCluster,
) -> None:
    outputs = [
        _submit(cluster, "doomed", "by_srun --steps=100000", 1),
        _submit(cluster, "first", f"by_srun {STEPS}", 1),
        _submit(cluster, "second", f"by_torchrun {STEPS}", 2),
        _submit(cluster, "third", f"by_srun {STEPS}", 1, "--uid=nobody", "--gid=nogroup"),
    ]
    names = ["doomed.1", "first.2", "second.3", "third.4"]
    wait_until(lambda: all('"ready"' in output.read_text() for output in outputs))
    ranks = [_jobs(cluster, node) for node in NODES]
    assert [[jobs[name]["rank"] for name in names] for jobs in ranks] == [[0] * 4, [1] * 4]
    for name, uid, weight in zip(names, [0, 0, 0, NOBODY], [1, 1, 2, 1], strict=True):
        both = [jobs[name] for jobs in ranks]
        assert both[0]["gang"] == both[1]["gang"]
        assert both[0]["gang"].startswith(f"{name}-")
        assert [(job["ranks"], job["uid"], job["weight"]) for job in both] == [(2, uid, weight)] * 2
    before = {name: job["iterations"] for name, job in ranks[0].items()}
    for name in names:
        _gate(cluster, name.partition(".")[0]).write_text("go\n")
    wait_until(
        lambda: all(
            job["iterations"] > before[name] for name, job in _jobs(cluster, NODES[0]).items()
        )
    )
    cluster.run("scancel", "1")
    cluster.wait()
    for node in NODES:
        history = _history(cluster, node)
        assert sorted(history) == names
        assert {history[name]["how"] for name in names[1:]} == {"ended"}
        assert history[names[0]]["iterations"] < 100_000
        decisions = cluster.status_of(node)["decisions"]
        assert any("is open until step " in each["reason"] for each in decisions)
    assert '"done"' not in outputs[0].read_text()
    alone = _digest_alone(cluster.folder / "alone")
    assert [_digest(output) for output in outputs[1:]] == [alone] * 3
