"""A job whose CUDA memory is the runtime's own: it takes turns, and nothing of it moves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.processes import gpushare_command
from tests.cuda.programs import lines_in, run_to_end, said_by_gpushare

SCRIPT = """
import json, os, sys
import torch
from tests.cuda import fake
fake.install_ops()
torch.manual_seed(0)
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    optimizer.zero_grad()
    model(torch.full((16, 256), 0.1 * step).cuda()).square().mean().backward()
    optimizer.step()
said = {"weight": model.weight.detach().cpu().double().sum().item()}
if "gpushare" in sys.modules:
    from gpushare import _C
    from gpushare.stats import job_stats
    base, size = _C.reserved_range()
    said["is_ours"] = base <= model.weight.data_ptr() < base + size
    stats = job_stats()
    said.update(iterations=stats.iterations, resident=stats.resident_bytes,
                is_managed=stats.is_managed)
os.write(1, (json.dumps(said) + chr(10)).encode())
os._exit(0)
"""
NCCL = "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"
MOVES_NOT = "this job takes turns, and its CUDA memory never moves"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"GPUSHARE_PASSTHROUGH": "on"}, "GPUSHARE_PASSTHROUGH=on"),
        ({NCCL: "1"}, f"{NCCL} is set"),
        ({NCCL: "0"}, ""),
        ({NCCL: "1", "GPUSHARE_PASSTHROUGH": "off"}, ""),
    ],
)
def test_its_memory_is_the_runtimes_own(
    settings: dict[str, str],
    reason: str,
    device: Callable[..., dict[str, str]],
    home: dict[str, str],
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    env = device(256 << 20, GPUSHARE_REPORT="0") | home | settings
    command = [sys.executable, "train.py"]
    done = run_to_end(gpushare_command("run", "--", *command), env, tmp_path)
    (shared,) = lines_in(done)
    (alone,) = lines_in(run_to_end(command, device(256 << 20), tmp_path))
    assert said_by_gpushare(done) == ([f"gpushare: {reason}: {MOVES_NOT}"] if reason else [])
    assert shared["weight"] == alone["weight"]
    assert shared["is_managed"] is True
    assert shared["iterations"] == 4
    assert shared["is_ours"] is (not reason)
    assert (shared["resident"] == 0) is bool(reason)
