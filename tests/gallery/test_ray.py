"""Ray under gpushare: a trial of Tune or a rank of Train is a job, and gives what it gives alone.

So it is beside another job too, where all of them have less memory than they need together, and
over two devices. Ray takes half a minute to start, so this is not part of the gallery's daily
programs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.processes import job_environment
from tests.gallery import outcome

pytest.importorskip("ray")
pytestmark = pytest.mark.skipif(
    os.environ.get("GALLERY") != "all", reason="Ray starts slowly: make gallery runs it"
)

EXAMPLE = outcome.EXAMPLES / "ray_tune.py"
TRAIN = outcome.EXAMPLES / "ray_train.py"
NUM_TRIALS = 4
NUM_AT_ONCE = 2
"""The example's `num_cpus`."""
CAPACITY = 40 << 20
PART = 0.6
"""The most of the sum of the peaks of all that run at the same time."""
GPUSHARE = ("-m", "gpushare")

# Trains until its input ends, or for so many steps, and prints each loss.
OTHER = """
import sys, threading, time
import torch
from torch import nn

torch.manual_seed(1)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 3072), nn.ReLU(), nn.Linear(3072, 256))
optimizer = torch.optim.Adam(model.parameters())
is_over = threading.Event()
if len(sys.argv) == 1:
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()
num_left = float(sys.argv[1]) if len(sys.argv) > 1 else float("inf")
while num_left > 0 and not is_over.is_set():
    x = torch.randn(64, 256)
    optimizer.zero_grad()
    loss = (model(x) - x).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex(), flush=True)
    time.sleep(0.05)  # on two cores the trials are to start some day
    num_left -= 1
"""
MOST_COMPARED = 100


def _start(command: Sequence[str], env: dict[str, str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *command],
        env=job_environment(env | {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}),
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )


def _output(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 0
    return output


def _run(command: Sequence[str], env: dict[str, str], folder: Path) -> str:
    return _output(_start(command, env, folder))


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the example prints on stock torch."""
    return _run([str(EXAMPLE)], {"GPUSHARE_DISABLE": "1"}, tmp_path_factory.mktemp("stock"))


def _ended(env: dict[str, str], folder: Path, num: int = 0) -> list[dict[str, Any]]:
    """The jobs that have ended; waits until there are ``num``, since Ray ends processes later."""
    deadline = time.monotonic() + 30
    while True:
        jobs: list[dict[str, Any]] = json.loads(
            _run([*GPUSHARE, "history", "--format", "json"], env, folder)
        )
        if len(jobs) >= num or time.monotonic() > deadline:
            return jobs
        time.sleep(0.5)


@contextmanager
def _other(env: dict[str, str], folder: Path) -> Iterator[Path]:
    """The other job, which trains meanwhile; yields the file that it prints to."""
    (folder / "other.py").write_text(OTHER)
    printed = folder / "printed"
    run = ["run", "--name", "other", "--", sys.executable, "other.py"]
    command = [sys.executable, *GPUSHARE, *run]
    with printed.open("w") as file:
        process = subprocess.Popen(
            command, env=job_environment(env), cwd=folder, stdin=subprocess.PIPE, stdout=file
        )
        try:
            while not printed.read_text() and process.poll() is None:
                time.sleep(0.05)
            yield printed
        finally:
            process.communicate(timeout=100)
    assert process.returncode == 0


def test_a_hook_makes_each_trial_a_job(
    coordinator: Callable[..., dict[str, str]], tmp_path: Path, stock: str
) -> None:
    """For a cluster that runs already, and has another environment."""
    # The two largest trials need 18 and 22 MiB.
    env = coordinator(capacity="32MiB", linger="60s")
    program = tmp_path / "with_hook.py"
    hook = 'runtime_env={"worker_process_setup_hook": "gpushare.auto.enable"}, '
    program.write_text(EXAMPLE.read_text().replace("ray.init(", f"ray.init({hook}"))
    assert _run([str(program)], env, tmp_path) == stock
    assert [job["group"] for job in _ended(env, tmp_path)] == [""] * NUM_TRIALS


def test_trials_beside_another_job_in_less_than_they_need_together(
    coordinator: Callable[..., dict[str, str]], tmp_path: Path, stock: str
) -> None:
    run = [*GPUSHARE, "run", "--group", "sweep", "--", sys.executable, str(EXAMPLE)]
    env = coordinator(capacity=str(CAPACITY), linger="60s")
    with _other(env, tmp_path) as printed:
        assert _run(run, env, tmp_path) == stock
    jobs = _ended(env, tmp_path)
    (other,) = (job for job in jobs if job["name"] == "other")
    trials = sorted(job["peak_bytes"] for job in jobs if job["group"] == "sweep")
    assert all(job["name"].startswith("train_") for job in jobs if job is not other)
    assert len(trials) == NUM_TRIALS
    needed = sum(trials[-NUM_AT_ONCE:]) + other["peak_bytes"]
    print(
        f"peaks of trials {trials}, of the other job {other['peak_bytes']}: {needed} bytes needed"
    )
    assert PART * needed >= CAPACITY
    assert other["spilled_bytes"] + other["dropped_bytes"] > 0, "the trials were to need its room"
    losses = printed.read_text().split()[:MOST_COMPARED]
    alone = _run(["other.py", str(len(losses))], {"GPUSHARE_DISABLE": "1"}, tmp_path)
    assert losses == alone.split()


def test_six_trials_on_two_devices(
    coordinator: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    program = tmp_path / "six.py"
    widths = "[512, 1024, 1536, 2048, 600, 700]"
    program.write_text(EXAMPLE.read_text().replace("[512, 1024, 1536, 2048]", widths))
    alone = _run([str(program)], {"GPUSHARE_DISABLE": "1"}, tmp_path)
    assert len(alone.splitlines()) == 6
    env = coordinator(devices="cpu:0=24MiB,cpu:1=24MiB", linger="60s")
    assert _run([*GPUSHARE, "run", "--", sys.executable, str(program)], env, tmp_path) == alone
    jobs = _ended(env, tmp_path, 6)
    assert len(jobs) == 6
    assert {job["device"] for job in jobs} == {"cpu:0", "cpu:1"}


def test_two_runs_of_ray_train_over_two_devices(
    coordinator: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    """Each run has a rank on each device, so the devices' turns have to agree."""
    alone = _run([str(TRAIN)], {"GPUSHARE_DISABLE": "1"}, tmp_path)
    # A rank needs 18 MiB.
    env = coordinator(devices="cpu:0=24MiB,cpu:1=24MiB", linger="60s")
    command = [*GPUSHARE, "run", "--", sys.executable, str(TRAIN)]
    runs = [_start(command, env | {"RUN": name}, tmp_path) for name in ("first", "second")]
    assert [_output(each) for each in runs] == [alone, alone]
    jobs = _ended(env, tmp_path, 4)
    ranks = sorted((job["name"], job["device"]) for job in jobs)
    assert ranks == [(name, f"cpu:{i}") for name in ("first", "second") for i in (0, 1)]
    assert sum(job["spilled_bytes"] + job["dropped_bytes"] for job in jobs) > 0
