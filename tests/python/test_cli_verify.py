"""``gpushare verify``: the comparison, the verdicts, and the real thing."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpushare.cli._verify.comparison import compare, describe
from gpushare.cli._verify.run import Record, alone_environment, spilling_environment
from gpushare.cli.verify import Report
from tests.python.conftest import clean_environment

ALONE = Record(
    losses=["a", "b", "c"],
    parameters=[{"shape": [2], "hash": "x"}, {"shape": [3], "hash": "y"}],
    num_optimizer_steps=3,
    seconds=1.0,
    spilled_bytes=0,
)
SPILLING = replace(ALONE, spilled_bytes=5 << 20)


def test_equal_records_are_identical() -> None:
    assert compare(ALONE, SPILLING).is_identical
    assert describe(compare(ALONE, SPILLING)).startswith("identical: 3 losses and 2 parameters")


def test_says_where_losses_part_and_which_parameters() -> None:
    other = replace(
        SPILLING,
        losses=["a", "B", "c"],
        parameters=[{"shape": [2], "hash": "x"}, {"shape": [3], "hash": "Y"}],
    )
    comparison = compare(ALONE, other)
    assert comparison.first_different_loss == 1
    assert comparison.different_parameters == [1]
    assert "part at iteration 1; 1 of 2 parameters differ" in describe(comparison)


def test_missing_losses_are_a_difference() -> None:
    assert compare(ALONE, replace(SPILLING, losses=["a", "b"])).first_different_loss == 2
    assert compare(ALONE, replace(SPILLING, parameters=[])).different_parameters == [0, 1]


def test_verdicts() -> None:
    other = replace(SPILLING, losses=["a", "b", "d"])
    proof = Report(ALONE, None, SPILLING)
    assert proof.is_proof
    assert "5.0 MiB" in proof.to_text()
    nothing_moved = Report(ALONE, None, ALONE)
    assert not nothing_moved.is_proof
    assert nothing_moved.verdict().startswith("no proof: nothing was spilled")
    different = Report(ALONE, None, other)
    assert not different.is_proof
    assert different.verdict().endswith("gpushare verify --repeat tells")
    not_deterministic = Report(ALONE, replace(ALONE, losses=["z"]), other)
    assert not_deterministic.verdict().startswith("not deterministic alone")
    assert not_deterministic.to_json()["is_deterministic_alone"] is False
    assert Report(ALONE, ALONE, SPILLING).to_json()["is_deterministic_alone"] is True
    assert proof.to_json()["is_deterministic_alone"] is None


def test_environments_of_the_two_runs() -> None:
    base = {"GPUSHARE_RUN": "1", "GPUSHARE_DISABLE": "1", "HOME": "/h"}
    alone, spilling = alone_environment(base), spilling_environment(base)
    assert alone["GPUSHARE_DISABLE"] == "1"
    assert "GPUSHARE_RUN" not in alone
    assert spilling["GPUSHARE_RUN"] == spilling["GPUSHARE_FORCE_SPILL"] == "1"
    assert "GPUSHARE_DISABLE" not in spilling
    assert alone["PYTHONPATH"] == spilling["PYTHONPATH"]


SCRIPT = """
import os, sys
import torch
from torch import nn
torch.manual_seed(0 if {deterministic} else int.from_bytes(os.urandom(4), "little"))
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(6):
    loss = model(torch.randn(32, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("program's own line")
"""


def _verify(
    tmp_path: Path, program: str, *options: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    (tmp_path / "train.py").write_text(program)
    command = [sys.executable, "-m", "gpushare", "verify", "--json", *options, "--"]
    ended = subprocess.run(
        [*command, sys.executable, "train.py"],
        env=clean_environment(socket="none"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return ended, json.loads(ended.stdout) if ended.stdout else {}


@pytest.mark.usefixtures("module_is_built")
def test_program_under_forced_spills_is_identical(tmp_path: Path) -> None:
    ended, report = _verify(tmp_path, SCRIPT.format(deterministic=True))
    assert ended.returncode == 0, ended.stderr
    assert report["schema_version"] == 1
    assert report["is_proof"]
    assert report["num_losses"] == [6, 6]
    assert report["num_parameters"] == [4, 4]
    # Each of six boundaries moves the weights, twice over for Adam's state.
    assert report["spilled_bytes"] >= 6 * (1 << 20)
    assert ended.stderr.count("program's own line") == 2


@pytest.mark.usefixtures("module_is_built")
def test_program_that_is_random_alone_is_said_to_be(tmp_path: Path) -> None:
    ended, report = _verify(tmp_path, SCRIPT.format(deterministic=False), "--repeat")
    assert ended.returncode == 1
    assert report["is_deterministic_alone"] is False
    assert report["first_different_loss"] == 0


def test_program_that_fails_is_exit_1(tmp_path: Path) -> None:
    ended, report = _verify(tmp_path, "raise SystemExit(9)")
    assert (ended.returncode, report) == (1, {})
    assert "ended with exit code 9" in ended.stderr


def test_program_that_does_not_train_is_exit_1(tmp_path: Path) -> None:
    ended, _ = _verify(tmp_path, "print(1)")
    assert ended.returncode == 1
    assert "no backward pass and no optimizer step" in ended.stderr
