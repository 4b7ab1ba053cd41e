"""Exceptions out of a forward, a backward or a step: the lease is closed, the loop may go on."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.python.watched import batch, make_model, train


def test_an_exception_in_the_forward_closes_the_lease(watch):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model)
    with pytest.raises(RuntimeError):
        model(torch.ones(2, 5))
    assert seen.log == ["closed"]
    train(model, optimizer)
    assert seen.log == ["closed", "optimizer*"]


def test_ctrl_c_in_the_forward_closes_the_lease(watch):
    class Interrupted(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make_model()
            self.is_interrupted = True

        def forward(self, x):
            if self.is_interrupted:
                raise KeyboardInterrupt
            return self.inner(x)

    model = Interrupted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model)
    with pytest.raises(KeyboardInterrupt):
        model(batch())
    assert seen.log == ["closed"]
    model.is_interrupted = False
    train(model, optimizer, 2)
    with torch.no_grad():
        model(batch())
    assert seen.log == ["closed", "optimizer*", "optimizer*", "forward"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_in_the_backward_closes_the_lease(watch, error):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model)

    def fail(_gradient):
        raise error

    loss = model(batch()).sum()
    handle = model[0].weight.register_hook(fail)
    with pytest.raises(error):
        loss.backward()
    assert seen.log == ["closed"]
    handle.remove()
    train(model, optimizer, 2)
    assert seen.log == ["closed", "optimizer*", "optimizer*"]


def test_an_exception_that_stays_inside_the_backward_ends_nothing(watch):
    model = make_model()
    seen = watch(model)

    def fail_inside(_gradient):
        inner = torch.ones(1, requires_grad=True)
        with torch.enable_grad(), pytest.raises(RuntimeError):
            (inner * 2).backward(torch.ones(3))

    model[0].weight.register_hook(fail_inside)
    model(batch()).sum().backward()
    assert seen.log == []


class FailingOptimizer(torch.optim.SGD):
    error = RuntimeError
    fails = True

    def step(self, closure=None):
        if self.fails:
            raise self.error
        return super().step(closure)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("scheduler", ["none", "before", "after"])
def test_an_exception_in_the_step_closes_the_lease(watch, error, scheduler):
    model = make_model()
    optimizer = FailingOptimizer(model.parameters(), lr=0.1)
    optimizer.error = error
    if scheduler == "before":
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
    seen = watch(model, optimizer)
    if scheduler == "after":
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with pytest.raises(error):
        train(model, optimizer)
    assert seen.log == ["closed"]
    optimizer.fails = False
    train(model, optimizer, 2)
    assert seen.log == ["closed", "optimizer*", "optimizer*"]


def test_the_step_of_an_unnamed_optimizer_may_fail(watch):
    model = make_model()
    optimizer = FailingOptimizer(model.parameters(), lr=0.1)
    seen = watch(model)
    with pytest.raises(RuntimeError):
        train(model, optimizer)
    optimizer.fails = False
    train(model, optimizer, 2)
    assert seen.log == ["closed", "optimizer*", "optimizer*"]


def test_an_exception_inside_an_explicit_iteration_is_its_own_affair(watch):
    model = make_model()
    optimizer = FailingOptimizer(model.parameters(), lr=0.1)
    seen = watch(model, optimizer)
    seen.watcher.watch.begin_iteration()
    with pytest.raises(RuntimeError):
        model(torch.ones(2, 5))
    with pytest.raises(RuntimeError):
        optimizer.step()
    assert seen.gate.is_inside
    seen.watcher.watch.end_iteration()
    assert seen.log == ["explicit"]
