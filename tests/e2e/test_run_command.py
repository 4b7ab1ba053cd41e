"""`gpushare run` on scripts that know nothing of gpushare."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.processes import ROOT, gpushare_command

Coordinator = Callable[..., dict[str, str]]

SCRIPT = """
import hashlib, json, sys
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 4))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(10):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(16, 32)), torch.randint(4, (16,)))
    loss.backward()
    optimizer.step()
digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
print(json.dumps({"digest": digest.hexdigest(), "arguments": sys.argv[1:]}))
if "fail" in sys.argv:
    sys.exit(7)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def _run(command: list[str], env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **env, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        command, env=environment, cwd=cwd, capture_output=True, text=True, check=False
    )


def test_unmodified_script_is_a_job_with_the_same_result(
    script: Path, coordinator: Coordinator
) -> None:
    env = coordinator() | {"GPUSHARE_FORCE_SPILL": "1"}
    alone = _run([sys.executable, str(script), "--flag"], {}, script.parent)
    command = gpushare_command("run", "--name", "mine", "--", sys.executable, str(script), "--flag")
    shared = _run(command, env, script.parent)
    assert shared.returncode == 0, shared.stderr
    assert json.loads(shared.stdout) == json.loads(alone.stdout)
    assert "mine: " in shared.stderr  # the report at the end of a job


def test_module_form_and_exit_code_are_the_programs_own(
    script: Path, coordinator: Coordinator
) -> None:
    command = gpushare_command("run", "--", sys.executable, "-m", "train", "fail")
    ended = _run(command, coordinator(), script.parent)
    assert ended.returncode == 7
    assert json.loads(ended.stdout)["arguments"] == ["fail"]
    assert "train: " in ended.stderr


def test_program_that_does_not_exist_is_named(coordinator: Coordinator, tmp_path: Path) -> None:
    ended = _run(gpushare_command("run", "--", "no-such-program"), coordinator(), tmp_path)
    assert ended.returncode != 0
    assert "no-such-program" in ended.stderr


def test_required_coordinator_that_cannot_be_had_is_exit_3(script: Path) -> None:
    (script.parent / "file").write_text("")
    command = gpushare_command("run", "--require", "--", sys.executable, str(script))
    ended = _run(command, {"GPUSHARE_SOCKET": str(script.parent / "file" / "sock")}, script.parent)
    assert ended.returncode == 3
    assert not ended.stdout
    assert len(ended.stderr.splitlines()) == 1


def test_console_script_on_path_is_a_job(script: Path, coordinator: Coordinator) -> None:
    console_script = script.with_name("train-model")
    console_script.write_text(f"#!{sys.executable}\n{SCRIPT}")
    console_script.chmod(0o755)
    env = coordinator() | {"PATH": f"{script.parent}:{os.environ['PATH']}"}
    ended = _run(gpushare_command("run", "--", "train-model", "--flag"), env, script.parent)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["arguments"] == ["--flag"]
    assert "train-model: " in ended.stderr  # the report at the end of a job
