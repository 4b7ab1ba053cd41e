"""Names of jobs in Ray's workers, with modules that answer as Ray's do."""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any, NoReturn

import pytest

from gpushare.integrations import ray


def _context(**answers: Any) -> types.SimpleNamespace:
    """A context, or a module, whose methods give these answers or raise them."""

    def method(answer: Any) -> Any:
        def call() -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call

    return types.SimpleNamespace(**{name: method(answer) for name, answer in answers.items()})


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/x/ray/_private/workers/default_worker.py", "--node"])
    for name in ("ray", "ray.train", "ray.tune"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def _have(monkeypatch: pytest.MonkeyPatch, **modules: Any) -> None:
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, "ray" if name == "ray" else f"ray.{name}", module)


def _core(actor: str | None, task: str, actor_id: str | None) -> types.SimpleNamespace:
    context = _context(get_actor_name=actor, get_task_name=task, get_actor_id=actor_id)
    return _context(get_runtime_context=context)


OUTSIDE = _context(get_context=RuntimeError("cannot be used outside of a training function"))


def test_a_rank_has_the_name_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    train = _context(get_context=_context(get_experiment_name="night"))
    _have(monkeypatch, train=train, tune=_context(), ray=_core("", "", "a5"))
    assert ray.work_name() == "night"


def test_a_trial_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    train = _context(get_context=DeprecationWarning("use tune's"))
    tune = _context(get_context=_context(get_trial_name="train_b0e81_00000"))
    _have(monkeypatch, train=train, tune=tune, ray=_core("", "", "a5"))
    assert ray.work_name() == "train_b0e81_00000"


def test_outside_of_a_trial_tune_warns_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def get_trial_name() -> None:
        warnings.warn("meant to be called in a trial", stacklevel=2)

    tune = _context(get_context=types.SimpleNamespace(get_trial_name=get_trial_name))
    _have(monkeypatch, train=OUTSIDE, tune=tune, ray=_core("", "Learner.step", "a5"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ray.work_name() == "Learner"


@pytest.mark.parametrize(
    ("core", "name"),
    [
        (_core("alice", "Learner.step", "a5"), "alice"),
        (_core("", "Learner.step", "a5"), "Learner"),
        (_core(None, "v1.fit", None), "v1.fit"),
        (_core(None, "", None), ""),
        (_core("7", "Learner.step", "a5"), ""),
        (_core("x" * 129, "", "a5"), ""),
        (types.SimpleNamespace(), ""),  # of an old Ray
    ],
)
def test_others_have_those_of_actors_and_tasks(
    core: types.SimpleNamespace, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _have(monkeypatch, ray=core)
    assert ray.work_name() == name


def test_outside_of_rays_workers_ray_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> NoReturn:
        pytest.fail("asked")

    _have(monkeypatch, ray=types.SimpleNamespace(get_runtime_context=fail))
    for argv in (["train.py"], []):
        monkeypatch.setattr(sys, "argv", argv)
        assert ray.work_name() == ""
