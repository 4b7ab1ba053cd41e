"""A lease inside an iteration that nobody will end, as when a notebook's cell has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from tests.e2e.alone import arguments
from tests.e2e.asking import row_of
from tests.support.job_process import JobProcess

Coordinator = Callable[..., dict[str, str]]
Alone = Callable[..., dict[str, Any]]

CELL = """
import sys
import gpushare, torch
model = torch.nn.Linear(64, 64)
gpushare.register(model, priority="interactive")
first = model(torch.ones(8, 64))
print("{}", flush=True)
sys.stdin.readline()
second = model(torch.ones(8, 64))
print('{"done": true, "is_equal": %s}' % str(torch.equal(first, second)).lower(), flush=True)
"""


def test_a_job_of_a_better_class_holds_up_the_others_no_longer_than_any(
    coordinator: Coordinator, alone: Alone
) -> None:
    env = coordinator(capacity="256MiB", min_quantum="20ms")
    with ExitStack() as stack:
        cell = stack.enter_context(JobProcess(command=[sys.executable, "-c", CELL], env=env))
        cell.say()
        assert row_of(env, cell)["state"] == "running"
        job = stack.enter_context(JobProcess(*arguments("mlp", "adam", 1, 20), "--shared", env=env))
        assert job.wait_ready().go().result()["digest"] == alone("mlp", "adam", 1, 20)["digest"]
        assert row_of(env, cell)["state"] == "idle"
        assert cell.go().result()["is_equal"]


PARKED = """
import sys
import gpushare, torch
model = torch.nn.Linear(2048, 2048)
job = gpushare.register(model)
first = model(torch.ones(8, 2048))
if sys.argv[1] == "parks":
    job.park()
print("{}", flush=True)
sys.stdin.readline()
left = job.stats().spilled_bytes
second = model(torch.ones(8, 2048))
print('{"done": true, "is_equal": %s, "left": %d}'
      % (str(torch.equal(first, second)).lower(), left), flush=True)
"""
LARGE = """
import gpushare, torch
gpushare.register()
torch.ones(14 << 20, dtype=torch.uint8), torch.ones(14 << 20, dtype=torch.uint8)
print('{"done": true}', flush=True)
"""


@pytest.mark.parametrize("what", ["parks", "stops"])
def test_a_job_that_stops_inside_an_iteration_gives_its_memory(
    coordinator: Coordinator, what: str
) -> None:
    """The last line of a cell was a call of the model: its iteration has not ended."""
    env = coordinator(capacity="36MiB", memory_wait="20s") | {"GPUSHARE_IDLE_SPILL": "1s"}
    script = [sys.executable, "-c", PARKED, what]
    with ExitStack() as stack:
        parked = stack.enter_context(JobProcess(command=script, env=env))
        parked.say()
        large = stack.enter_context(JobProcess(command=[sys.executable, "-c", LARGE], env=env))
        assert large.say() == {"done": True}
        result = parked.go().result()
    assert result["left"] > 0
    assert result["is_equal"]


# So two ranks of a program begin: one has its model, and waits for the other in a collective.
UNREGISTERED = """
import sys
import gpushare, torch
model = torch.nn.Linear(2048, 2048)
before = [parameter.clone() for parameter in model.parameters()]
print("{}", flush=True)
sys.stdin.readline()
same = all(map(torch.equal, model.parameters(), before))
job = gpushare.register(model)
left = job.stats().spilled_bytes
model(torch.ones(8, 2048))
same = same and all(map(torch.equal, model.parameters(), before))
print('{"done": true, "is_equal": %s, "left": %d}' % (str(same).lower(), left), flush=True)
"""


def test_a_process_that_is_no_job_yet_gives_the_memory_that_it_does_not_use(
    coordinator: Coordinator,
) -> None:
    env = coordinator(capacity="48MiB", memory_wait="20s")
    with ExitStack() as stack:
        early = stack.enter_context(
            JobProcess(command=[sys.executable, "-c", UNREGISTERED], env=env)
        )
        early.say()
        large = stack.enter_context(JobProcess(command=[sys.executable, "-c", LARGE], env=env))
        assert large.say() == {"done": True}
        large.go()
        result = early.go().result()
    assert result["left"] > 0
    assert result["is_equal"]
