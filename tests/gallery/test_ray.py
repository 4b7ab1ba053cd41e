"""Ray Tune under gpushare: each trial is a job, in a budget for one, and gives what it gives alone.

Ray takes half a minute to start, so this is not part of the gallery's daily programs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks.processes import job_environment
from tests.gallery import outcome

pytest.importorskip("ray")
pytestmark = pytest.mark.skipif(
    os.environ.get("GALLERY") != "all", reason="Ray starts slowly: make gallery runs it"
)

EXAMPLE = outcome.EXAMPLES / "ray_tune.py"
NUM_TRIALS = 4


def _run(command: Sequence[str], env: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        env=job_environment(env | {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}),
        cwd=folder,
        check=True,
        timeout=200,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the example prints on stock torch."""
    return _run([str(EXAMPLE)], {"GPUSHARE_DISABLE": "1"}, tmp_path_factory.mktemp("stock"))


@pytest.mark.parametrize("way", ["run", "hook"])
def test_each_trial_is_a_job(
    coordinator: Callable[..., dict[str, str]], tmp_path: Path, stock: str, way: str
) -> None:
    # The two largest trials need 18 and 22 MiB.
    env = coordinator(capacity="32MiB", linger="60s")
    program = EXAMPLE
    if way == "hook":  # for a cluster that runs already, and has another environment
        program = tmp_path / "with_hook.py"
        hook = 'runtime_env={"worker_process_setup_hook": "gpushare.auto.enable"}, '
        program.write_text(EXAMPLE.read_text().replace("ray.init(", f"ray.init({hook}"))
        found = _run([str(program)], env, tmp_path)
    else:
        run = ["-m", "gpushare", "run", "--group", "sweep", "--", sys.executable]
        found = _run([*run, str(program)], env, tmp_path)
    assert found == stock
    history = ["-m", "gpushare", "history", "--format", "json"]
    jobs = json.loads(_run(history, env, tmp_path))
    assert len(jobs) == NUM_TRIALS
    assert {job["group"] for job in jobs} == {"sweep" if way == "run" else ""}
