"""Programs that leave open which device they use, on a machine with several."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.processes import gpushare_command
from tests.cuda import fake
from tests.cuda.programs import lines_in, lines_in_text, run_to_end

SCRIPT = """
import json, os, sys
import torch
from tests.cuda import fake
fake.install_ops()
seen = torch.cuda.is_available(), torch.cuda.device_count()
torch.manual_seed(0)
model = torch.nn.Linear(64, 8).cuda()
optimizer = torch.optim.Adam(model.parameters())
def train(steps):
    for step in range(steps):
        optimizer.zero_grad()
        model(torch.randn(16, 64).cuda()).square().mean().backward()
        optimizer.step()
train(2)
if len(sys.argv) > 1:  # until all of them have a device
    open(sys.argv[1] + "/" + str(os.getpid()), "w").close()
    while len(os.listdir(sys.argv[1])) < int(sys.argv[2]):
        train(1)
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 8).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    train(2)
weight = model.weight.detach().cpu().double().sum().item()
said = {"seen": seen, "weight": weight, "current": torch.cuda.current_device(),
        "uuid": str(torch.cuda.get_device_properties(0).uuid)}
if "gpushare" in sys.modules:
    from gpushare import _native
    from gpushare.stats import job_stats
    said |= {"managed": job_stats().is_managed, "device": _native.device(),
             "sockets": _native.sockets()}
os.write(1, (json.dumps(said) + chr(10)).encode())
os._exit(0)
"""


def _run(env: dict[str, str], folder: Path, *, shared: bool = True) -> dict[str, Any]:
    (folder / "train.py").write_text(SCRIPT)
    command = [sys.executable, "train.py"]
    said: dict[str, Any] = lines_in(
        run_to_end(gpushare_command("run", "--", *command) if shared else command, env, folder)
    )[0]
    return said


def _run_together(env: dict[str, str], folder: Path, count: int) -> list[dict[str, Any]]:
    """Starts them at once; each says where it is when all have their devices."""
    (folder / "train.py").write_text(SCRIPT)
    (folder / "here").mkdir()
    command = gpushare_command("run", "--", sys.executable, "train.py", "here", str(count))
    started = [
        subprocess.Popen(command, env=env, cwd=folder, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    return [lines_in_text(each.communicate(timeout=120)[0])[0] for each in started]


def test_programs_that_start_at_once_are_spread(
    device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    env = device(256 << 20, num_devices=3, GPUSHARE_REPORT="0") | home | {"GPUSHARE_DEVICE": "any"}
    alone = _run(env, tmp_path, shared=False)
    shared = _run_together(env, tmp_path, 3)
    assert len({job["device"] for job in shared}) == 3
    for job in shared:
        assert job["managed"]
        assert job["seen"] == alone["seen"] == [True, 3]
        assert job["weight"] == alone["weight"]
        assert job["current"] == 0
        assert job["device"] == f"cuda:GPU-{job['uuid'].removeprefix('GPU-')}"
        assert [os.path.basename(path) for path in job["sockets"]] == ["cuda.sock"]  # noqa: PTH119


def test_status_shows_the_devices_of_their_coordinator(
    device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    env = device(256 << 20, num_devices=2, GPUSHARE_REPORT="0") | home | {"GPUSHARE_LINGER": "60s"}
    job = _run(env | {"GPUSHARE_DEVICE": "any"}, tmp_path)

    def status(*words: str) -> list[str]:
        command = gpushare_command("status", "--json", *words)
        text = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
        return [row["device"] for row in json.loads(text)["devices"]]

    both = status()
    assert len(both) == 2
    assert status("--device", "cuda") == both
    assert status("--device", job["device"]) == [job["device"]]
    stopped = subprocess.run(
        gpushare_command("coordinator", "stop", "--device", job["device"]),
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert stopped.returncode != 0
    assert "has a coordinator in common with other devices" in stopped.stderr
    log = subprocess.run(
        gpushare_command("coordinator", "log"), env=env, capture_output=True, text=True, check=True
    )
    assert f"is to be on {job['device']}" in log.stdout


def test_who_names_a_device_or_sees_one_has_that(
    device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    env = device(256 << 20, num_devices=2, GPUSHARE_REPORT="0") | home
    first, second = (
        _run(env | {"GPUSHARE_DEVICE": f"cuda:{number}"}, tmp_path)["device"] for number in range(2)
    )
    assert first != second
    assert _run(env, tmp_path)["device"] == first  # who says nothing
    env |= {"GPUSHARE_DEVICE": "any"}
    seen = _run(env | {"CUDA_VISIBLE_DEVICES": "1"}, tmp_path)
    assert (seen["device"], seen["seen"]) == (second, [True, 1])
    ranks = [_run(env | {"LOCAL_RANK": str(rank)}, tmp_path)["device"] for rank in range(2)]
    assert ranks == [first, second]


def test_a_device_that_has_a_coordinator_of_its_own_keeps_it(
    device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> None:
    """As one of an older version, whose jobs go on."""
    env = device(256 << 20, num_devices=2, GPUSHARE_REPORT="0") | home | {"GPUSHARE_LINGER": "60s"}
    own = _run(env | {"CUDA_VISIBLE_DEVICES": "0"}, tmp_path)["device"]
    stop = gpushare_command("coordinator", "stop", "--force")
    subprocess.run(stop, env=env, capture_output=True, check=True)
    start = gpushare_command("coordinator", "start", "--device", own, "--capacity", "128MiB")
    subprocess.run(start, env=fake.environment() | env, capture_output=True, check=True)
    other = _run(env | {"GPUSHARE_DEVICE": "any"}, tmp_path)
    assert other["device"] != own
    again = _run(env | {"GPUSHARE_DEVICE": "cuda:0"}, tmp_path)
    assert (again["device"], again["managed"]) == (own, True)
    assert os.path.basename(again["sockets"][-1]) != "cuda.sock"  # noqa: PTH119
