"""Two real processes share one device: results as alone, turns taken, memory moved."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path

import pytest

from tests.python.conftest import clean_environment
from tests.support import forked

JOB = Path(__file__).with_name("sharing_job.py")
ALONE = f"""
import sys, torch
sys.path.insert(0, {str(JOB.parent)!r})
import sharing_job
torch.set_num_threads(1)
for seed in (1, 2):
    print(sharing_job.train(seed, is_alone=True)["digest"])
"""


@pytest.fixture
def start():
    """start(arguments..., name="value") -> a job's process; it ends with the test."""
    with contextlib.ExitStack() as processes:

        def start_one(*arguments, **settings):
            process = processes.enter_context(
                forked.start(
                    [str(JOB), *arguments],
                    clean_environment(report="0", **settings),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )
            processes.callback(process.kill)
            return process

        yield start_one


def wait_ready(process):
    assert process.stdout.readline() == "ready\n", process.communicate()[1]


def finish(process, text=None):
    out, err = process.communicate(text, timeout=100)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


@pytest.mark.usefixtures("module_is_built")
def test_two_jobs_take_turns_and_their_results_are_as_alone(start, run_forked, coordinator):
    # Turns shorter than what a switch costs would allow, so that there are some.
    settings = coordinator | {"capacity": "80MiB", "max_wait": "50ms", "switch_loss": "0.5"}
    jobs = [start("train", str(seed), **settings) for seed in (1, 2)]
    for job in jobs:
        wait_ready(job)
    for job in jobs:
        job.stdin.write("\n")
        job.stdin.flush()
    shared = [finish(job) for job in jobs]
    for one, digest in zip(shared, run_forked(ALONE, disable="1").stdout.split(), strict=True):
        assert one["digest"] == digest
        assert one["stats"]["is_managed"]
        assert one["stats"]["leases"] >= 3
    assert sum(one["stats"]["spilled_total_bytes"] for one in shared) > 0


@pytest.mark.usefixtures("module_is_built")
def test_ctrl_c_is_answered_while_waiting_for_a_lease(start, coordinator):
    holder = start("hold", **coordinator | {"max_wait": "60s"})
    wait_ready(holder)
    waited = finish(start("wait", **coordinator | {"max_wait": "60s"}))
    assert waited == {"is_interrupted": True, "lease_state": "kIdle"}
    assert finish(holder, "\n")["iterations"] == 1
