"""What `gpushare slurm print-config` prints, on a real Slurm of one node."""

from __future__ import annotations

import sys

from tests.support.slurm import needs_slurm, slurm_cluster

pytestmark = needs_slurm

TRAIN = """
import torch
model = torch.nn.Linear(100, 100)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(30):
    optimizer.zero_grad()
    model(torch.randn(8, 100)).square().mean().backward()
    optimizer.step()
"""


def test_jobs_share_under_a_coordinator_that_outlives_them() -> None:
    with slurm_cluster("node1") as cluster:
        program = cluster.folder / "train.py"
        program.write_text(TRAIN)
        command = (
            f"env GPUSHARE_REPORT=1 {sys.executable} -m gpushare run -- {sys.executable} {program}"
        )
        shards = "--gres=shard:2"
        trained = [
            cluster.submit(name, command, shards, "--get-user-env") for name in ("first", "a job/2")
        ]
        of_another = ("--uid", "nobody", "--gid", "nogroup", "--array", "7")
        shown = cluster.submit("sweep", "env", shards, *of_another)
        cluster.wait()
        said = [each.read_text() for each in trained]
        status = cluster.status_of("node1")
        environment = dict(line.split("=", 1) for line in shown.read_text().splitlines())
    assert "gpushare: first.1: " in said[0]
    assert "gpushare: a_job_2.2: " in said[1]
    assert all("30 iterations" in each for each in said)
    assert environment["GPUSHARE_NAME"].startswith("sweep.")
    assert environment["GPUSHARE_GROUP"].startswith("sweep.")
    assert (environment["GPUSHARE_WEIGHT"], environment["GPUSHARE_REQUIRE"]) == ("2", "1")
    assert "GPUSHARE_ARBITER" not in environment
    assert status["devices"][0]["switches"] >= 1, "one coordinator, started once, had both jobs"
