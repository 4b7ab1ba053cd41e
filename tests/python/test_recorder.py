"""The recorder of ``gpushare verify``, in processes of their own on stock torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpushare._torch.recorder import hash_tensor

if TYPE_CHECKING:
    from tests.python.conftest import Run

SCRIPT = """
import os, sys
import torch
from torch import nn
from gpushare._torch import recorder

recorder.start({path!r})
torch.manual_seed({seed})
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters())
for number in range(5):
    loss = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
{more}
"""


def _record(run_forked: Run, path: Path, seed: int = 0, more: str = "") -> dict[str, Any]:
    run_forked(SCRIPT.format(path=str(path), seed=seed, more=more), disable="1")
    record = json.loads(path.read_text())
    assert record["schema_version"] == 1
    return dict(record)


def test_same_program_has_the_same_record(run_forked: Run, tmp_path: Path) -> None:
    one = _record(run_forked, tmp_path / "one.json")
    two = _record(run_forked, tmp_path / "two.json")
    assert len(one["losses"]) == 5
    assert one["num_optimizer_steps"] == 5
    assert [entry["shape"] for entry in one["parameters"]] == [[16, 8], [16], [4, 16], [4]]
    for key in ("losses", "losses_hash", "parameters", "parameters_hash"):
        assert one[key] == two[key]


def test_other_seed_has_another_record(run_forked: Run, tmp_path: Path) -> None:
    one = _record(run_forked, tmp_path / "one.json")
    two = _record(run_forked, tmp_path / "two.json", seed=1)
    assert one["losses"][0] != two["losses"][0]
    assert one["parameters_hash"] != two["parameters_hash"]


def test_change_after_the_last_step_is_seen(run_forked: Run, tmp_path: Path) -> None:
    one = _record(run_forked, tmp_path / "one.json")
    change = "with torch.no_grad(): model[2].bias[3] += 1e-7"
    two = _record(run_forked, tmp_path / "two.json", more=change)
    assert one["losses"] == two["losses"]
    different = [a != b for a, b in zip(one["parameters"], two["parameters"], strict=True)]
    assert different == [False, False, False, True]


def test_several_roots_and_groups_added_later(run_forked: Run, tmp_path: Path) -> None:
    more = """
extra = nn.Parameter(torch.zeros(3))
optimizer.add_param_group({"params": [extra]})
torch.autograd.backward([extra.sum(), (2 * extra).sum()])
optimizer.step()
"""
    record = _record(run_forked, tmp_path / "record.json", more=more)
    assert len(record["losses"]) == 7
    assert record["parameters"][-1]["shape"] == [3]


def test_forked_child_records_nothing(run_forked: Run, tmp_path: Path) -> None:
    more = """
pid = os.fork()
if pid == 0:
    model(torch.randn(4, 8)).sum().backward()
    sys.exit(0)
os.waitpid(pid, 0)
"""
    record = _record(run_forked, tmp_path / "record.json", more=more)
    assert len(record["losses"]) == 5
    assert [path.name for path in tmp_path.glob("record*")] == ["record.json"]


def test_second_process_does_not_overwrite_the_first(run_forked: Run, tmp_path: Path) -> None:
    _record(run_forked, tmp_path / "record.json")
    _record(run_forked, tmp_path / "record.json", seed=1)
    assert len(list(tmp_path.glob("record.json*"))) == 2


def test_program_that_does_not_train_writes_nothing(run_forked: Run, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    run_forked(f"from gpushare._torch import recorder; recorder.start({str(path)!r})", disable="1")
    assert not path.exists()


def test_hash_tells_type_shape_and_value_apart() -> None:
    torch = pytest.importorskip("torch")
    zeros = torch.zeros(4)
    others = [torch.zeros(2, 2), torch.zeros(4, dtype=torch.int32), -torch.zeros(4), torch.ones(4)]
    assert hash_tensor(zeros) == hash_tensor(torch.zeros(4))
    assert len({hash_tensor(tensor) for tensor in [zeros, *others]}) == 5
    assert hash_tensor(torch.eye(3)[:, 0]) == hash_tensor(torch.eye(3)[:, 0].clone())
    assert hash_tensor(torch.empty(0)) != hash_tensor(torch.empty(0, 2))
    assert hash_tensor(torch.tensor(1.0, dtype=torch.bfloat16))
