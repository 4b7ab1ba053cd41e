"""`gpushare run`'s automatic registration: which module is the model."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from gpushare import _install, _native, auto, job
from gpushare._torch import optimizer_steps


class FakeJob:
    def __init__(self, model):
        self.models = [model]

    def watch(self, model):
        self.models.append(model)


@pytest.fixture
def finder(monkeypatch):
    """A finder that has begun to watch; `registered` holds the job it made."""
    made = auto.Finder()
    made.registered = None

    def register(model=None):
        made.registered = FakeJob(model)
        return made.registered

    original_call, original_init = nn.Module.__call__, torch.optim.Optimizer.__init__
    monkeypatch.setattr(optimizer_steps, "around", None)
    optimizer_steps.watch_steps()
    monkeypatch.setattr(_native, "is_installed", lambda: True)
    monkeypatch.setattr(job, "register", register)
    monkeypatch.setattr(job, "current", lambda: made.registered)
    made.start()
    yield made
    nn.Module.__call__ = original_call
    torch.optim.Optimizer.__init__ = original_init


def x():
    return torch.ones(1, 2)


def test_the_outermost_module_with_an_optimizers_parameter_is_the_model(finder):
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            return self.inner(x)

    model, other = Outer(), nn.Linear(2, 2)
    torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = torch.optim.Adam(model.inner.parameters())
    other(x())
    assert finder.registered is None
    model(x())
    assert finder.registered.models == [model]
    assert optimizer is not None


def test_watching_ends_when_the_model_is_found(finder):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watching = nn.Module.__call__
    model(x())
    assert nn.Module.__call__ is not watching
    other = nn.Linear(2, 2)
    torch.optim.SGD(other.parameters(), lr=0.1)
    other(x())
    assert finder.registered.models == [model]
    assert optimizer is not None


def test_what_the_program_has_put_around_the_call_of_modules_stays(finder):
    watching = nn.Module.__call__
    calls = []

    def counted(module, *args):
        calls.append(module)
        return watching(module, *args)

    nn.Module.__call__ = counted
    model = nn.Linear(2, 2)
    model(x())
    model(x())
    assert finder.registered.models == [model]
    assert calls == [model, model]


def test_without_an_optimizer_the_first_module_with_parameters_is_evaluated(finder):
    nn.ReLU()(x())
    assert finder.registered is None
    model = nn.Linear(2, 2)
    model(x())
    assert finder.registered.models == [model]


def test_a_model_that_trains_takes_the_place_of_one_that_was_evaluated(finder):
    frozen, model = nn.Linear(2, 2), nn.Linear(2, 2)
    frozen(x())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    frozen(x())
    model(x())
    assert finder.registered.models == [frozen, model]
    assert optimizer is not None


def test_in_a_sweep_the_next_model_takes_the_place_of_one_that_is_gone(finder):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x())
    assert finder.registered.models.pop() is model
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x())
    assert finder.registered.models == [model]
    assert optimizer is not None


def test_a_script_that_registers_by_itself_is_left_alone(finder):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    own = finder.registered = FakeJob(model)
    model(x())
    assert finder.registered is own
    assert own.models == [model]
    assert optimizer is not None


def bare_step(optimizer, tensor):
    tensor.square().sum().backward()
    optimizer.step()


def test_a_program_that_trains_bare_tensors_is_registered_after_two_steps(finder):
    tensor = x().requires_grad_()
    optimizer = torch.optim.SGD([tensor], lr=0.1)
    bare_step(optimizer, tensor)
    assert finder.registered is None
    bare_step(optimizer, tensor)
    own = finder.registered
    assert own.models == [None]
    bare_step(optimizer, tensor)
    assert finder.registered is own


def test_a_model_that_comes_after_bare_tensors_is_watched(finder):
    tensor, model = x().requires_grad_(), nn.Linear(2, 2)
    optimizers = [torch.optim.SGD([tensor], lr=0.1), torch.optim.SGD(model.parameters(), lr=0.1)]
    for _ in range(2):
        bare_step(optimizers[0], tensor)
    model(x())
    assert finder.registered.models == [None, model]


def test_steps_inside_a_process_whose_job_is_the_scripts_own_make_none(finder):
    tensor = x().requires_grad_()
    optimizer = torch.optim.SGD([tensor], lr=0.1)
    own = finder.registered = FakeJob(None)
    for _ in range(4):
        bare_step(optimizer, tensor)
    assert finder.registered is own


def test_a_finder_that_takes_over_leaves_the_steps_to_the_job_that_sees_them(finder, monkeypatch):
    """As where a notebook loads the extension after it has trained under `gpushare run`."""
    finder.registered = FakeJob(None)
    monkeypatch.setattr(optimizer_steps, "around", the_jobs := lambda step, *args: step(*args))
    auto.Finder().start()
    assert optimizer_steps.around is the_jobs


def test_modules_called_inside_backward_are_not_looked_at(finder):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    leaf = x().requires_grad_()

    def call_it(grad):
        with torch.no_grad():
            model(x())
        return grad

    leaf.register_hook(call_it)
    leaf.sum().backward()
    assert finder.registered is None
    assert optimizer is not None


def test_where_gpushare_was_refused_watching_ends(finder, monkeypatch):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watching = nn.Module.__call__
    monkeypatch.setattr(_native, "is_installed", lambda: False)
    monkeypatch.setattr(_install, "is_waiting_for_cuda", lambda: True)
    model(x())
    assert nn.Module.__call__ is watching
    monkeypatch.setattr(_install, "is_waiting_for_cuda", lambda: False)
    model(x())
    assert nn.Module.__call__ is not watching
    again = torch.optim.SGD(model.parameters(), lr=0.1)
    assert nn.Module.__call__ is not watching
    assert finder.registered is None
    assert (optimizer, again) != (None, None)


def test_optimizers_that_are_equal_or_not_hashable_are_told_apart(finder):
    class Equal(torch.optim.SGD):  # noqa: PLW1641 - as a dataclass does
        def __eq__(self, other):
            return True

    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    optimizers = [Equal(model.parameters(), lr=0.1) for model in (first, second)]
    assert finder.is_model(first)
    assert finder.is_model(second)
    optimizers.pop()
    assert not finder.is_model(nn.Linear(4, 4))


def test_an_unmodified_script_is_a_job(run_forked, coordinator):
    ended = run_forked(
        """
        import gpushare
        import torch
        torch.set_num_threads(1)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        job = gpushare.current()
        print(job.name, job.is_managed, job.stats().iterations)
        """,
        **coordinator | {"run": "1", "name": "mine"},
    )
    assert ended.stdout == "mine True 4\n"


def test_of_two_threads_that_call_their_first_models_at_once_one_registers(finder, monkeypatch):
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    other = threading.Thread(target=lambda: finder.found(second))
    registered = []

    def register(model):
        registered.append(model)
        if not other.ident:
            other.start()
            other.join(0.2)  # it has seen that modules are looked at, and comes to this point too
        return FakeJob(model)

    monkeypatch.setattr(job, "register", register)
    monkeypatch.setattr(job, "current", lambda: None)
    finder.found(first)
    other.join()
    assert registered == [first]
