"""The compiled functions around calls and steps: what they read of a program must not change it."""

from __future__ import annotations

import collections
import gc
import signal
import weakref

import pytest
import torch
from torch import nn

from gpushare import _native
from tests.python.watched import batch, make_model, train


class Reading(nn.Module):
    """A model that runs code of its own when somebody reads whether it trains."""

    def __init__(self):
        super().__init__()
        self.inner = make_model()
        self.error = None

    @property
    def training(self):
        error = vars(self).get("error")
        if error is not None:
            raise error
        return True

    @training.setter
    def training(self, value):
        pass

    def forward(self, x):
        return self.inner(x)


class StateReading(torch.optim.SGD):
    """An optimizer that runs code of its own when somebody reads its state."""

    error = None

    @property
    def state(self):
        error, self.error = self.error, None
        if error is not None:
            raise error
        return self.kept

    @state.setter
    def state(self, value):
        self.kept = value


def test_ctrl_c_while_the_model_is_read_leaves_the_call_and_closes_the_lease(watch):
    model = Reading()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model)
    model.error = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        model(batch())
    assert seen.log == ["closed"]
    model.error = None
    train(model, optimizer, 2)
    assert seen.log == ["closed", "optimizer*", "optimizer*"]


def test_a_signal_while_the_model_is_read_is_not_lost(watch):
    class Signalled(Reading):
        @property
        def training(self):
            if vars(self).get("is_signalled"):
                signal.raise_signal(signal.SIGINT)
                for _ in range(1000):
                    pass
            return True

        @training.setter
        def training(self, value):
            pass

    model = Signalled()
    seen = watch(model)
    model.is_signalled = True
    with pytest.raises(KeyboardInterrupt):
        model(batch())
    assert seen.log == ["closed"]


def test_an_error_while_the_model_is_read_is_none_of_the_program(watch):
    model = Reading()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model)
    model.error = ValueError
    train(model, optimizer, 2)
    assert seen.log == ["optimizer*"] * 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_while_an_optimizer_is_read_leaves_the_step_and_closes_the_lease(watch, error):
    model = make_model()
    optimizer = StateReading(model.parameters(), lr=0.1)
    seen = watch(model)
    optimizer.error = error
    with pytest.raises(error):
        train(model, optimizer)
    assert seen.log == ["closed"]
    train(model, optimizer, 2)
    assert seen.log == ["closed", "optimizer*", "optimizer*"]


def test_an_error_while_an_optimizer_is_read_is_none_of_the_program(watch):
    model = make_model()
    optimizer = StateReading(model.parameters(), lr=0.1)
    seen = watch(model)
    optimizer.error = ValueError
    train(model, optimizer, 2)
    assert seen.log == ["optimizer*"] * 2


class Dict(dict):
    def values(self):
        raise ValueError

    __iter__ = items = keys = values


class List(list):
    def __iter__(self):
        raise ValueError

    def __getitem__(self, index):
        raise ValueError

    __len__ = __iter__


class Odd:
    """Not even its class can be read."""

    def __getattribute__(self, name):
        raise KeyboardInterrupt


class Tensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, *_args, **_kwargs):
        raise ValueError(function)


def odd_tensor():
    return torch.ones(1, requires_grad=True).as_subclass(Tensor)


Named = collections.namedtuple("Named", ["tensor"])


class Returning(nn.Module):
    def forward(self, value):
        return value


@pytest.mark.parametrize(
    ("value", "is_inside"),
    [
        (Dict(a=torch.ones(1, requires_grad=True)), True),
        (Dict(a=torch.ones(1)), False),
        (List([torch.ones(1, requires_grad=True)]), True),
        (collections.OrderedDict(a=1, b=torch.ones(1, requires_grad=True)), True),
        (Named(torch.ones(1, requires_grad=True)), True),
        (Named(Odd()), False),
        (Odd(), False),
        (nn.Parameter(torch.ones(1)), True),
        (odd_tensor(), True),
        ([[torch.ones(1, requires_grad=True)]], False),
        (None, False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_code_of_a_result_runs(watch, value, is_inside):
    seen = watch(Returning().eval())
    assert seen.model(value) is value
    assert seen.gate.is_inside == is_inside
    with torch.no_grad():
        seen.model(value)


def test_no_code_of_an_argument_runs(watch):
    seen = watch(Returning())
    with torch.no_grad():
        seen.model(Odd())
        assert seen.log == ["forward"]
        seen.model(odd_tensor())
    assert seen.gate.is_inside, "a reentrant checkpoint may come back to it"


def test_an_error_of_the_gate_on_the_way_out_has_the_first_one_as_its_context(watch):
    seen = watch(make_model())

    def close():
        raise KeyboardInterrupt

    seen.gate.close = close
    with pytest.raises(KeyboardInterrupt) as caught:
        seen.model(torch.ones(2, 5))
    assert isinstance(caught.value.__context__, RuntimeError)


def test_a_model_that_calls_itself_without_end_is_an_error_of_its_own(watch):
    class Endless(nn.Module):
        def forward(self, x):
            return self(x)

    seen = watch(Endless())
    with pytest.raises(RecursionError):
        seen.model(batch())
    assert set(seen.log) == {"closed"}


def test_a_watch_may_end_inside_a_call(watch):
    class Detaching(nn.Module):
        def forward(self, x):
            seen.watcher.detach()
            del seen.watcher
            gc.collect()
            return x

    seen = watch(Detaching())
    watcher = seen.watcher
    reference = weakref.ref(watcher)
    seen.model(batch())
    assert seen.log == []
    seen.watcher = watcher
    assert reference() is watcher


def test_another_watch_may_begin_inside_a_call(watch):
    class Registering(nn.Module):
        def forward(self, x):
            others.append(watch(make_model()))
            return x

    others = []
    seen = watch(Registering())
    seen.model(batch())
    optimizer = torch.optim.SGD(others[0].model.parameters(), lr=0.1)
    train(others[0].model, optimizer, 2)
    assert seen.log == []
    assert others[0].log == ["optimizer*"] * 2


def test_explicit_iterations_do_not_nest(watch):
    native = watch(make_model()).watcher.watch
    native.begin_iteration()
    with pytest.raises(RuntimeError, match="inside another"):
        native.begin_iteration()
    native.end_iteration()


def test_a_stream_that_is_captured_holds_the_boundaries(watch):
    from gpushare._torch import captures

    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model)
    captures.under_way.add(1)
    try:
        train(model, optimizer, 2)
        assert seen.log == []
        assert not seen.gate.is_inside
    finally:
        captures.under_way.clear()
    train(model, optimizer)
    assert seen.log == ["optimizer*"]


@pytest.mark.parametrize("name", ["call_model", "call_compiled", "step_optimizer"])
def test_too_few_arguments_are_an_error(name):
    with pytest.raises(TypeError, match=name):
        getattr(_native.load(), name)()
