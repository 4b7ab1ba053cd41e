"""Limits of the shell and folders that cannot be used: one line, and a way to go on."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.python.conftest import clean_environment

pytestmark = pytest.mark.usefixtures("module_is_built")

TRAIN = """
import gpushare, torch
torch.set_num_threads(1)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.Adam(model.parameters())
job = gpushare.register(model, optimizer)
for _ in range(3):
    model(torch.ones(8, 64)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(job.is_managed, job.stats().iterations)
"""


def _run_limited(
    code: str, limit: int, number: int, **settings: str
) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environment(report="0", **settings),
        preexec_fn=lambda: resource.setrlimit(number, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("gibibytes", [16, 64])
def test_a_job_runs_where_the_address_space_is_limited(coordinator, gibibytes: int) -> None:
    ended = _run_limited(TRAIN, gibibytes << 30, resource.RLIMIT_AS, **coordinator)
    assert (ended.returncode, ended.stdout) == (0, "True 3\n"), ended.stderr
    assert ended.stderr == ""


def test_a_job_runs_where_files_are_limited(coordinator) -> None:
    ended = _run_limited(TRAIN, 4 << 20, resource.RLIMIT_FSIZE, **coordinator)
    assert (ended.returncode, ended.stdout) == (0, "True 3\n"), ended.stderr


def test_a_job_whose_coordinator_is_gone_for_good_says_so(run_forked) -> None:
    # Not below pytest's folder: socket paths are short.
    folder = tempfile.mkdtemp(prefix="gpushare-")
    ended = run_forked(
        f"""
import os, shutil, time
import gpushare, torch
from gpushare._coordinator.client import CoordinatorClient
job = gpushare.register(torch.nn.Linear(4, 4))
assert job.is_managed
coordinator = CoordinatorClient(["{folder}/sock"]).status()["coordinator"]["pid"]
shutil.rmtree("{folder}")
open("{folder}", "w").close()  # so that no other can start there
os.kill(coordinator, 9)
deadline = time.monotonic() + 120
while job.stats().is_managed:
    assert time.monotonic() < deadline, "still managed 120 s after the coordinator was killed"
    time.sleep(0.01)
assert not job.is_managed
assert job.stats().unmanaged_reason
""",
        socket=f"{folder}/sock",
        capacity="64MiB",
    )
    Path(folder).unlink()
    assert "goes on unmanaged" in ended.stderr
