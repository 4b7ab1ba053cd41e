"""`gpushare run` on a CUDA device: scripts that know nothing of it, started in every usual way."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.processes import gpushare_command
from tests.cuda.programs import lines_in, lines_of, run_to_end, said_by_gpushare

# The fake device's operators are all that a script on a real one would not have. The pause at its
# end is for a thread of torch's: see child.py.
SCRIPT = """
import json, os, sys, time
import torch
from tests.cuda import fake
fake.install_ops()
rank = int(os.environ.get("LOCAL_RANK", 0))
torch.cuda.set_device(rank)
if "RANK" in os.environ:
    import torch.distributed as dist
    dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(64, 8).cuda()
if "RANK" in os.environ:
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    optimizer.zero_grad()
    model(torch.randn(16, 64).cuda()).square().mean().backward()
    optimizer.step()
stats = {}
if "gpushare" in sys.modules:
    from gpushare import _native
    from gpushare.stats import job_stats
    stats = dict(iterations=job_stats().iterations, is_managed=job_stats().is_managed)
    stats["device"] = _native.device()
weight = next(model.parameters()).detach().cpu().double().sum().item()
line = json.dumps({"weight": weight, "iterations": stats.get("iterations"),
                   "is_managed": stats.get("is_managed"), "device": stats.get("device")})
os.write(1, (line + chr(10)).encode())
time.sleep(0.5)
"""


@pytest.mark.parametrize("way", ["script", "module", "torchrun"])
def test_an_unmodified_script_is_a_job(
    way: str, device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    env = device(256 << 20) | home
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    command = {
        "script": [sys.executable, "train.py"],
        "module": [sys.executable, "-m", "train"],
        "torchrun": [*torchrun, "train.py"],
    }[way]
    (shared,) = lines_of(gpushare_command("run", "--", *command), env, tmp_path)
    assert shared["is_managed"] is True
    assert shared["iterations"] == 4
    assert str(shared["device"]).startswith("cuda:GPU-")
    (alone,) = lines_of(command, env, tmp_path)
    assert alone["is_managed"] is None, "gpushare is not there without being asked for"
    assert shared["weight"] == alone["weight"]


CPU_SCRIPT = """
import sys
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.ReLU())
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    optimizer.zero_grad()
    model(torch.randn(16, 64)).square().mean().backward()
    optimizer.step()
job = sys.modules["gpushare"].current()
print(job and job.is_managed)
"""
NO_JOB = (
    "gpushare: the model is on the CPU, and the device to share a CUDA one: this process is no job "
    "yet. GPUSHARE_DEVICE=cpu shares the CPU"
)


@pytest.mark.parametrize("named", ["", "cpu"])
def test_a_script_that_uses_only_the_cpu_is_told_why_it_is_no_job(
    named: str, device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(CPU_SCRIPT)
    env = device(256 << 20, GPUSHARE_DEVICE=named, GPUSHARE_REPORT="0") | home
    done = run_to_end(gpushare_command("run", "--", sys.executable, "train.py"), env, tmp_path)
    assert done.stdout == f"{bool(named) or None}\n"
    assert said_by_gpushare(done) == ([] if named else [NO_JOB])


MOVING_SCRIPT = SCRIPT.replace(
    "optimizer = torch", "model.cpu()(torch.randn(16, 64)); model.cuda()\noptimizer = torch"
)


def test_a_model_that_is_tried_on_the_cpu_first_is_a_job_all_the_same(
    device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(MOVING_SCRIPT)
    command = gpushare_command("run", "--", sys.executable, "train.py")
    done = run_to_end(command, device(256 << 20, GPUSHARE_REPORT="0") | home, tmp_path)
    assert json.loads(done.stdout)["iterations"] == 4
    assert said_by_gpushare(done) == [NO_JOB]


def test_ranks_on_several_devices_are_a_gang(
    device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    env = device(256 << 20, num_devices=2) | home
    env |= {"GPUSHARE_LINGER": "60s", "GPUSHARE_LOG": "debug"}
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = run_to_end(gpushare_command("run", "--", *torchrun, "train.py"), env, tmp_path)
    ranks = lines_in(done)
    assert ranks[0]["weight"] == ranks[1]["weight"], "their gradients were averaged"
    assert [rank["is_managed"] for rank in ranks] == [True, True]
    assert len({rank["device"] for rank in ranks}) == 2
    log = run_to_end(gpushare_command("coordinator", "log"), env, tmp_path).stdout
    assert "its row is open until step" in log


def test_a_part_of_the_sms_is_set_before_cuda_starts(
    device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(
        "import os, torch\n"
        "print(os.environ['CUDA_MPS_ACTIVE_THREAD_PERCENTAGE'], torch.cuda.is_initialized())\n"
    )
    os.mkfifo(tmp_path / "control")
    env = device(256 << 20) | home | {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    command = gpushare_command("run", "--sm-share", "0.4", "--", sys.executable, "train.py")
    assert run_to_end(command, env, tmp_path).stdout == "40 False\n"


def test_a_part_of_the_sms_without_mps_is_no_part(
    device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    env = device(256 << 20) | home | {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path)}
    command = gpushare_command("run", "--sm-share", "0.4", "--", sys.executable, "train.py")
    done = run_to_end(command, env, tmp_path)
    (line,) = [line for line in said_by_gpushare(done) if "SM_SHARE" in line]
    assert line.startswith("gpushare: GPUSHARE_SM_SHARE=0.4: no effect, unless MPS runs")
