"""``register(device=...)``: the device asked for is shared, or one line says why not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cuda import fake
from tests.cuda.programs import run, said_by_gpushare

Coordinator = Callable[..., dict[str, str]]

FIRST, SECOND = "cuda:FIRST", "cuda:SECOND"
"""The names of the two devices; which they are, the program finds out."""

PROGRAM = """
import gpushare, torch
from gpushare import _native
names = ["cuda:" + _native.load().cuda_device_info(index)["uuid"] for index in range(2)]
print(*names)
wish = "{wish}".replace("cuda:FIRST", names[0]).replace("cuda:SECOND", names[1])
model = None
{before}
job = gpushare.register(model, device=wish)
print(job.is_managed, _native.device())
"""
USE = 'torch.empty(1, device="cuda")'


def _ended(wish: str, before: str, coordinator: Coordinator, **variables: str) -> list[str]:
    """What the program printed, and the one line, if any, that gpushare said."""
    env = fake.environment(num_devices=2) | coordinator() | variables
    ended = run("-c", PROGRAM.format(wish=wish, before=before), env=env)
    assert ended.returncode == 0, ended.stderr
    names, printed = ended.stdout.splitlines()
    first, second = names.split()
    lines = [printed, *said_by_gpushare(ended)]
    return [line.replace(first, FIRST).replace(second, SECOND) for line in lines]


@pytest.mark.parametrize(
    ("wish", "device"),
    [
        ("auto", FIRST),
        ("cuda", FIRST),
        ("cuda:1", SECOND),
        (SECOND, SECOND),
        ("cpu", "cpu"),
    ],
)
def test_before_torch_starts_cuda_it_chooses(
    wish: str, device: str, coordinator: Coordinator
) -> None:
    assert _ended(wish, "", coordinator) == [f"True {device}"]


@pytest.mark.parametrize("wish", ["auto", "cuda", "cuda:0", FIRST])
def test_the_shared_device_may_be_asked_for(wish: str, coordinator: Coordinator) -> None:
    assert _ended(wish, USE, coordinator) == [f"True {FIRST}"]


@pytest.mark.parametrize(
    ("wish", "variable"), [("cuda:1", ""), (SECOND, ""), ("cpu", ""), ("cuda", "cpu")]
)
def test_another_one_than_the_shared_device_is_refused(
    wish: str, variable: str, coordinator: Coordinator
) -> None:
    shared = variable or f"cuda:0 ({FIRST})"
    printed, line = _ended(wish, USE, coordinator, GPUSHARE_DEVICE=variable)
    assert printed == f"False {variable or FIRST}"
    assert line == (
        f'gpushare: register was asked for device "{wish}", and this process shares {shared} '
        f"already. GPUSHARE_DEVICE={wish} in its environment chooses the other one. Training goes "
        "on unmanaged. GPUSHARE_REQUIRE=1 makes this fatal"
    )


def test_a_model_on_another_device_is_refused(coordinator: Coordinator) -> None:
    before = 'model = torch.nn.Linear(8, 8).to("cuda:1")'
    printed, line = _ended("auto", before, coordinator)
    assert printed == f"False {FIRST}"
    assert line == (
        f"gpushare: the model is on cuda:1, and this process shares cuda:0 ({FIRST}). "
        "GPUSHARE_DEVICE=cuda:1 in its environment chooses the other one. Where nothing is chosen, "
        "a process shares the device whose number is its LOCAL_RANK, or the first one. Training "
        "goes on unmanaged. GPUSHARE_REQUIRE=1 makes this fatal"
    )
    chosen = _ended("auto", before, coordinator, GPUSHARE_DEVICE="cuda:1")
    assert chosen == [f"True {SECOND}"]


def test_what_is_older_than_a_late_choice_of_the_cpu_is_named(coordinator: Coordinator) -> None:
    before = "model = torch.nn.Linear(512, 512, bias=False)"
    printed, line = _ended("cpu", before, coordinator)
    assert printed == "True cpu"
    assert line == (
        'gpushare: 1.0 MiB of this job\'s memory is older than register(device="cpu"), or not made '
        "by torch, and cannot move. Set GPUSHARE_DEVICE=cpu instead"
    )


def test_a_choice_that_fails_leaves_that_of_the_settings(coordinator: Coordinator) -> None:
    before = 'gpushare.register(device="cuda:9"); wish = None'
    printed, line = _ended("", before, coordinator)
    assert printed == f"True {FIRST}"
    assert line.startswith('gpushare: device "cuda:9": torch sees 2 CUDA devices')
