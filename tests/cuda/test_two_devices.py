"""One process, two devices: the first is shared, the second is torch's own."""

from __future__ import annotations

import json
import re
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
first = torch.nn.Linear(256, 512).to("cuda:0")
second = torch.nn.Linear(512, 8).to("cuda:1")
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])
losses, failure = [], ""
try:
    for step in range(4):
        optimizer.zero_grad()
        hidden = first(torch.full((16, 256), 0.1 * step, device="cuda:0"))
        loss = second(hidden.relu().to("cuda:1")).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
except RuntimeError as error:
    failure = str(error).splitlines()[0]
os.write(1, (json.dumps(dict(losses=losses, failure=failure)) + chr(10)).encode())
os._exit(0)
"""
REFUSED = (
    "gpushare: device 1 is refused access to memory of device 0, which is shared and moves. "
    "GPUSHARE_PASSTHROUGH=on leaves this job's memory where it is"
)


@pytest.fixture
def run(
    device: Callable[..., dict[str, str]], home: dict[str, str], tmp_path: Path
) -> Callable[..., tuple[dict[str, object], list[str]]]:
    """run(...settings) -> what the script found, and what gpushare said."""
    (tmp_path / "train.py").write_text(SCRIPT)

    def train(*, shared: bool = True, **settings: str) -> tuple[dict[str, object], list[str]]:
        env = device(256 << 20, num_devices=2, GPUSHARE_REPORT="0", **settings) | home
        command = [sys.executable, "train.py"]
        done = run_to_end(
            gpushare_command("run", "--", *command) if shared else command, env, tmp_path
        )
        return lines_in(done)[0], said_by_gpushare(done)

    return train


@pytest.mark.parametrize("settings", [{}, {"FAKECUDA_PEERS": "1", "GPUSHARE_PASSTHROUGH": "on"}])
def test_trains_as_alone(
    settings: dict[str, str], run: Callable[..., tuple[dict[str, object], list[str]]]
) -> None:
    alone, _ = run(shared=False, **settings)
    shared, _ = run(**settings)
    assert alone["failure"] == ""
    assert shared == alone


def test_no_other_device_gets_at_memory_that_moves(
    run: Callable[..., tuple[dict[str, object], list[str]]],
) -> None:
    shared, said = run(FAKECUDA_PEERS="1")
    assert "peer access is not supported" in str(shared["failure"])
    assert said[0] == REFUSED


TEACHER = """
import json, os, sys
import torch
from tests.cuda import fake
fake.install_ops()
place = sys.argv[1]
teacher = torch.nn.Linear(256, 8).to("cuda:1")
x = torch.ones(16, 256)
with torch.no_grad():
    target = teacher(x.to("cuda:1")).to(place)
model = torch.nn.Linear(256, 8).to(place)
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    optimizer.zero_grad()
    (model(x.to(place)) - target).square().mean().backward()
    optimizer.step()
from gpushare.stats import job_stats
stats = job_stats()
os.write(1, (json.dumps([stats.is_managed, stats.optimizer_steps]) + chr(10)).encode())
os._exit(0)
"""
ELSEWHERE = re.compile(
    r"gpushare: the model is on cuda:1, and this process shares cuda:0 \(cuda:GPU-[0-9a-f-]+\)\. "
    r"GPUSHARE_DEVICE=cuda:1 in its environment chooses the other one\. .* "
    r"This process is no job yet"
)


@pytest.mark.parametrize(("place", "steps"), [("cuda:0", 4), ("cuda:1", 0)])
def test_the_model_on_the_shared_device_makes_the_job(
    place: str,
    steps: int,
    device: Callable[..., dict[str, str]],
    home: dict[str, str],
    tmp_path: Path,
) -> None:
    """A model on the other device is called first."""
    (tmp_path / "train.py").write_text(TEACHER)
    env = device(256 << 20, num_devices=2, GPUSHARE_REPORT="0") | home
    command = gpushare_command("run", "--", sys.executable, "train.py", place)
    done = run_to_end(command, env, tmp_path)
    assert json.loads(done.stdout.splitlines()[-1]) == [steps > 0, steps]
    (line,) = said_by_gpushare(done)
    assert ELSEWHERE.fullmatch(line), line
