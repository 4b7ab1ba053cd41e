"""One coordinator of two CPU devices, and jobs that name none."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.processes import gpushare_command, job_environment, read_status
from tests.e2e.asking import wait_until
from tests.e2e.conftest import start_all
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]
DEVICES = "cpu:0=64MiB,cpu:1=64MiB"


def _job(
    stack: ExitStack, folder: Path, env: dict[str, str] | None, seed: int, *more: str
) -> JobProcess:
    shared = [] if env is None else ["--shared"]
    arguments = ["--rows", "4096", "--seed", str(seed), "--folder", str(folder), *shared, *more]
    return stack.enter_context(JobProcess(*arguments, env=env, module="tests.e2e.beside_job"))


def _devices(env: dict[str, str]) -> dict[str, int]:
    """How many jobs each device has; empty while there is no coordinator."""
    devices: list[dict[str, Any]] = read_status(env).get("devices", [])
    return {each["device"]: len(each["jobs"]) for each in devices}


# With one device, and one lane there, they would wait for each other for ever.
def test_jobs_that_name_no_device_run_at_the_same_time(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(devices=DEVICES, device="any")
    meet = ["--iterations", "16", "--meet-at", "8", "--jobs", "2"]
    with ExitStack() as stack:
        jobs = [_job(stack, tmp_path, env, seed, *meet) for seed in (0, 1)]
        results = start_all(jobs)
    assert [result["num_together"] > 0 for result in results] == [True, True]
    for seed, result in enumerate(results):
        with ExitStack() as stack:
            alone = start_all([_job(stack, tmp_path, None, seed, "--iterations", "16")])
        assert result["losses"] == alone[0]["losses"]


# Both stay in an iteration until the test lets them go on.
def test_placed_jobs_come_back_to_their_devices_after_a_crash(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    env = coordinator(devices=DEVICES)
    stay = ["--iterations", "16", "--meet-at", "8", "--jobs", "3"]
    one_each = {"cpu:0": 1, "cpu:1": 1}
    with ExitStack() as stack:
        jobs = [
            _job(stack, tmp_path, env | {"GPUSHARE_DEVICE": wish}, seed, *stay).wait_ready()
            for seed, wish in enumerate(("cpu:1", "any"))
        ]
        assert _devices(env) == one_each
        for job in jobs:
            job.go()
        wait_until(lambda: len(list(tmp_path.glob("met-*"))) == 2)
        os.kill(read_status(env)["coordinator"]["pid"], signal.SIGKILL)
        wait_until(lambda: _devices(env) == one_each)
        table = subprocess.run(
            gpushare_command("ps", "-o", "job,name,device"), env=job_environment(env),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        rows = {tuple(line.split()[1:3]) for line in table.stdout.splitlines()[1:]}
        assert rows == {("beside-0", "cpu:1"), ("beside-1", "cpu:0")}
        (tmp_path / "met-test").touch()
        (tmp_path / "alone").mkdir()
        for seed, job in enumerate(jobs):
            alone = _job(stack, tmp_path / "alone", None, seed, "--iterations", "16")
            assert job.outcome()["losses"] == alone.wait_ready().go().outcome()["losses"]
