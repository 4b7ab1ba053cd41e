"""Which models are alike, and what a coordinator knows of one that comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from gpushare import _native
from gpushare._settings.config import Config
from gpushare._torch.fingerprint import NONE, OFF, fingerprint
from gpushare._torch.optimizer_state import addresses, tensors_in


def make_model(width: int = 8) -> nn.Module:
    return nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), nn.Linear(width, 2))


def number(model: nn.Module | None, profile: str = "", device: str = "cpu") -> int:
    return fingerprint(model, profile, device=device)


def frozen(model: nn.Module) -> nn.Module:
    model[0].requires_grad_(False)
    return model


class Subclass(nn.Sequential):
    """The same parameters, perhaps another forward."""


def test_equal_models_have_one_number_whatever_their_values():
    torch.manual_seed(1)
    first = number(make_model())
    torch.manual_seed(2)
    assert number(make_model()) == first
    assert 0 < first < 2**64


@pytest.mark.parametrize(
    "other",
    [
        make_model(16),
        make_model().double(),
        frozen(make_model()),
        Subclass(*make_model()),
        nn.Sequential(*make_model(), nn.ReLU(), nn.Linear(2, 2)),
        nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, affine=False), nn.Linear(8, 2)),
    ],
)
def test_another_shape_type_or_class_has_another_number(other):
    assert number(other) != number(make_model())


def test_of_a_device_only_its_kind_counts():
    model = make_model()
    assert number(model, device="cuda:GPU-1") == number(model, device="cuda:GPU-2")
    assert number(model, device="cuda:GPU-1") != number(model)


def test_wrapped_models_are_what_is_inside():
    model = make_model()
    assert number(torch.compile(model)) == number(model)
    assert number(nn.DataParallel(torch.compile(model))) == number(model)


def test_a_model_without_shapes_yet_has_a_number():
    assert number(nn.LazyLinear(3)) != number(nn.LazyLinear(3, bias=False))


class Sharded(nn.Linear):
    """As wrappers are whose parameters are elsewhere until they are used."""

    def named_modules(self, *args: object, **kwargs: object) -> Iterator[tuple[str, nn.Module]]:
        raise RuntimeError("parameters are not materialized")


def without_modules() -> nn.Module:
    model = nn.Linear(2, 3)
    del model.__dict__["_modules"]
    return model


@pytest.mark.parametrize(
    ("model", "why"), [(Sharded(2, 3), "not materialized"), (without_modules(), "AttributeError")]
)
def test_a_model_that_cannot_be_read_is_like_no_other(model, why, monkeypatch, capsys):
    assert number(model) == NONE
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(_native, "settings", lambda: Config(log_level="debug"))
    assert number(model) == NONE
    assert number(model) == NONE
    assert capsys.readouterr().err.count(why) == 1


def test_a_name_takes_the_models_place_and_off_is_none():
    assert number(make_model(), "mine") == number(make_model(16), "mine") == number(None, "mine")
    assert number(None, "mine") != number(None, "yours")
    assert number(make_model(), OFF) == NONE
    assert number(None) == NONE


def test_in_another_process_it_is_the_same(run_forked):
    code = """
    from gpushare._torch.fingerprint import fingerprint
    from torch import nn
    print(fingerprint(nn.Linear(2, 3), "", device="cpu"))
    """
    assert int(run_forked(code, disable="1").stdout) == number(nn.Linear(2, 3))


JOB = """
import gpushare, sys, torch
from gpushare._settings.config import load, socket_paths
from gpushare._coordinator.client import CoordinatorClient
model = torch.nn.Linear(300, WIDTH)
job = gpushare.register(model, iterations=100)
row = CoordinatorClient(socket_paths(load(), "cpu")).status()["devices"][0]["jobs"][-1]
print(row["iteration_source"], row["iteration_seconds"])
for _ in range(30):
    with job.iteration():
        model(torch.ones(50, 300)).sum().backward()
"""


def test_a_job_that_comes_back_is_known_where_it_registers(run_forked, coordinator):
    # Coordinators that end soon after their job: each learns of the one before from its file.
    file = Path(f"{coordinator['socket']}.profiles")

    def begin(width: int = 200, **more: str) -> str:
        code = JOB.replace("WIDTH", str(width))
        source, seconds = run_forked(code, **coordinator | more).stdout.split()
        assert (float(seconds) > 0) == (source != "unknown")
        return source

    assert begin() == "unknown"
    [line] = [line for line in file.read_text().splitlines() if line.startswith("profile ")]
    remembered = dict(zip(line.split()[1::2], line.split()[2::2], strict=True))
    # Measured by the job: the mean would say nothing of a tail.
    assert int(remembered["tail_ns"]) >= int(remembered["iteration_ns"]) > 0
    assert int(remembered["iterations"]) == 30
    assert begin() == "remembered"
    assert begin(width=7) == "unknown"
    assert begin(profile="off") == "unknown"
    assert begin(profile="mine") == "unknown"
    assert begin(width=7, profile="mine") == "remembered"


def test_a_program_that_counts_its_calls_sees_none_of_ours():
    called = []

    class Calls(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            called.append(function)
            return function(*args, **(kwargs or {}))

    model = make_model()
    expected = number(model)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    with Calls():
        assert number(model) == expected
        assert all(addresses(tensors_in(optimizer)))
    assert not called
