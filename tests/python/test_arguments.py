from __future__ import annotations

import pytest
import torch

from gpushare._settings.arguments import (
    check_device,
    check_model,
    check_optimizers,
    job_changes,
    job_options,
)
from gpushare._settings.config import Config

NOTHING = {
    "name": None,
    "group": None,
    "gang": None,
    "priority": None,
    "weight": None,
    "memory_limit": None,
    "iterations": None,
    "deadline": None,
    "share_limit": None,
    "elastic_limits": None,
    "elastic_threads": None,
    "profile": None,
}


def options(config=None, **given):
    return job_options(config or Config(), **(NOTHING | given))


def test_what_is_not_given_comes_from_the_settings():
    config = Config(name="a", group="b", priority="guaranteed", weight=2.0, memory_limit_bytes=7)
    assert options(config) == {
        "name": "a",
        "group": "b",
        "priority": "guaranteed",
        "weight": 2.0,
        "memory_limit_bytes": 7,
        "deadline_seconds": 0.0,
        "share_limit": 0.0,
        "elastic_limits": False,
        "elastic_threads": False,
        "iterations": 0,
        "profile": "",
        "gang": "",
    }


def test_what_is_given_wins():
    given = {"name": "x", "group": "y", "priority": "opportunistic", "weight": 3, "iterations": 9}
    given |= {"elastic_threads": True, "gang": "z"}
    chosen = options(Config(name="a", weight=2.0), memory_limit="2GiB", **given)
    assert chosen["memory_limit_bytes"] == 2 << 30
    assert {key: chosen[key] for key in given} == given


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("priority", "high", "guaranteed, interactive, normal, opportunistic"),
        ("weight", 0, "a finite number above 0"),
        ("weight", float("nan"), "a finite number above 0"),
        ("weight", "2x", "a finite number above 0"),
        ("weight", True, "a finite number above 0"),
        ("memory_limit", "much", 'a size like "2GiB"'),
        ("memory_limit", -1, 'a size like "2GiB"'),
        ("memory_limit", 1.5, 'a size like "2GiB"'),
        ("deadline", "soon", 'a time like "250ms"'),
        ("name", "3", "printable text of at most 128 bytes that is not a number"),
        ("share_limit", 1.5, "a number from 0.01 to 1, or 0 for none"),
        ("share_limit", 0.001, "a number from 0.01 to 1, or 0 for none"),
        ("elastic_limits", "perhaps", "0 or 1"),
        ("share_limit", True, "a number from 0.01 to 1, or 0 for none"),
        ("elastic_threads", "yes", "0 or 1"),
        ("deadline", -1, 'a time like "250ms"'),
        ("deadline", 2e6, 'a time like "250ms", "10s" or "2 min", up to 1000000 s'),
        ("iterations", 0, "a whole number above 0"),
        ("iterations", 2.5, "a whole number above 0"),
        ("iterations", True, "a whole number above 0"),
        ("gang", "", "a printable name"),
        ("gang", 7, "a printable name"),
        ("gang", "a\x1b", "a printable name"),
        ("name", "x" * 129, "printable text of at most 128 bytes"),
        ("name", 7, "printable text"),
        ("group", "a\tb", "printable text"),
        ("profile", "a\nb", 'printable text of at most 128 bytes, or "off" for none'),
    ],
)
def test_a_bad_argument_is_named_with_its_value_and_what_is_allowed(name, value, allowed):
    with pytest.raises(ValueError, match=f"^{name}: ") as caught:
        options(**{name: value})
    assert f"{value!r}; allowed: {allowed}" in str(caught.value)


def test_a_device_is_one_that_could_be():
    assert [check_device(one) for one in (None, "auto", "cuda:1")] == ["", "auto", "cuda:1"]
    for wrong in ("tpu", "cuda:x", 1, torch.device("cpu")):
        with pytest.raises(ValueError, match=r"^device: .*; allowed: auto, any, cpu, cpu:NUMBER"):
            check_device(wrong)


def test_a_model_is_a_module_or_none():
    model = torch.nn.Linear(1, 1)
    assert check_model(model) is model
    assert check_model(None) is None
    with pytest.raises(ValueError, match=r"model: an object of type function; allowed: a torch"):
        check_model(lambda x: x)


class Wrapper:
    """As Accelerate's: no hooks of its own."""

    def __init__(self, optimizer):
        self.optimizer = optimizer


def test_optimizers_may_be_none_one_several_or_wrapped():
    parameter = torch.nn.Parameter(torch.zeros(1))
    one, two = (torch.optim.SGD([parameter], lr=0.1) for _ in range(2))
    assert check_optimizers(None) == []
    assert check_optimizers(one) == [one]
    assert check_optimizers([one, Wrapper(Wrapper(two))]) == [one, two]
    for wrong in (7, [one, "adam"], Wrapper(object())):
        with pytest.raises(ValueError, match="allowed: a torch.optim.Optimizer"):
            check_optimizers(wrong)


def test_changes_are_what_is_given_as_the_coordinator_takes_them():
    assert job_changes(weight=2) == {"weight": 2.0}
    assert job_changes(priority="guaranteed", memory_limit="1GiB", deadline="50ms") == {
        "priority": "guaranteed",
        "memory_limit_bytes": 1 << 30,
        "deadline_ns": 50_000_000,
    }
    assert job_changes(share_limit="0.25") == {"share_limit": 0.25}
    assert job_changes(elastic_limits=False) == {"is_elastic": False}
    assert job_changes(memory_limit="none", deadline=0, share_limit="none") == {
        "memory_limit_bytes": 0,
        "deadline_ns": 0,
        "share_limit": 0,
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "nothing to change: say priority, weight, memory_limit, deadline, share_limit or"),
        ({"priority": "high", "weight": 1}, "priority: 'high'; allowed: guaranteed"),
        ({"memory_limit": "much"}, "memory_limit: 'much'; allowed"),
        ({"deadline": "soon"}, "deadline: 'soon'; allowed"),
        ({"deadline": "50"}, "deadline: '50'; say 50ms or 50s"),
    ],
)
def test_changes_that_cannot_be_meant_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        job_changes(**given)
