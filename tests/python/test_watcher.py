"""Real torch loops, on stock torch, against a gate that only writes down what it is told."""

from __future__ import annotations

import copy
import pickle
import sys

import pytest
import torch
from torch import nn

from tests.python.watched import Watched, batch, make_model, train


def test_a_plain_loop_has_an_iteration_a_step(watch):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model)
    train(model, optimizer, 3)
    assert seen.log == ["optimizer*"] * 3
    assert not seen.gate.is_inside


def test_any_optimizer_counts_unless_one_is_named(watch):
    model = make_model()
    mine, other = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
    seen = watch(model, mine)
    model(batch()).sum().backward()
    other.step()
    assert seen.log == []
    mine.step()
    assert seen.log == ["optimizer*"]


def test_accumulation_has_no_boundary_until_the_step(watch):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model, optimizer)
    train(model, optimizer, 2, num_micro_batches=4)
    assert seen.log == ["optimizer*"] * 2


def test_lbfgs_is_one_iteration_a_step(watch):
    model = make_model()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
    seen = watch(model)

    def closure():
        optimizer.zero_grad()
        loss = model(batch()).square().sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    assert seen.log == ["optimizer*"] * 3


def test_steps_inside_backward_end_no_iteration(watch):
    model = make_model()
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: optimizers[p].step())
    seen = watch(model)
    for _ in range(5):
        model(batch()).sum().backward()
    assert seen.log == ["next_forward"] * 3


@pytest.mark.parametrize("is_reentrant", [True, False])
def test_a_checkpointed_forward_is_inside_one_iteration(watch, is_reentrant):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model)
    for _ in range(2):
        out = torch.utils.checkpoint.checkpoint(
            model, batch().requires_grad_(), use_reentrant=is_reentrant
        )
        assert seen.gate.is_inside
        out.sum().backward()
        assert seen.gate.is_inside
        optimizer.step()
    assert seen.log == ["optimizer*"] * 2


def test_a_checkpointed_sequence_is_inside_one_iteration(watch):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model[0])  # what is called first, which `gpushare run` takes for the model
    for _ in range(2):
        x = batch().requires_grad_()
        out = torch.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=True)
        assert seen.gate.is_inside
        out.sum().backward()
        optimizer.step()
    assert seen.log == ["optimizer*"] * 2


def test_a_skipped_step_is_ended_by_the_scaler(watch):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    seen = watch(model)
    for factor in (1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale(model(batch()).sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
    assert seen.log == ["optimizer*", "scaler", "optimizer*"]


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_each_evaluation_forward_is_an_iteration(watch, context):
    model = make_model()
    seen = watch(model)
    with context():
        for _ in range(3):
            model(batch())
    assert seen.log == ["forward"] * 3


def test_eval_mode_with_gradients_may_still_train(watch):
    model = make_model().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model)
    train(model, optimizer, 2)
    assert seen.log == ["optimizer*"] * 2
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    model(batch())
    assert seen.log[-1] == "forward"


@pytest.mark.parametrize("wrap", [tuple, list, lambda parts: dict(enumerate(parts))])
def test_looks_for_gradients_inside_a_result(watch, wrap):
    class Wrapping(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = make_model()

        def forward(self, x):
            return wrap([1, self.inner(x)])

    seen = watch(Wrapping().eval())
    seen.model(batch())
    assert seen.gate.is_inside


def test_a_replica_calls_itself(watch):
    model = watch(make_model()).model
    replica = model._replicate_for_data_parallel()
    replica.forward = lambda x: x + 1
    assert torch.equal(replica(batch()), batch() + 1)


def test_optimizers_are_copied_and_freed_as_ever(watch):
    import gc
    import weakref

    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model, optimizer)
    train(model, optimizer)
    twin = pickle.loads(pickle.dumps(optimizer))
    assert "step" not in vars(twin)
    assert "step" not in vars(copy.deepcopy(optimizer))
    seen.watcher.detach()
    assert "step" not in vars(optimizer)
    seen.watcher.attach(model, [optimizer])
    reference = weakref.ref(optimizer)
    gc.disable()
    try:
        del optimizer
        assert reference() is None  # no cycle keeps its state until the collector comes
    finally:
        gc.enable()


def test_a_module_that_calls_itself_is_one_forward(watch):
    class Recursive(nn.Module):
        def forward(self, x, depth=3):
            return x if depth == 0 else self(x + 1, depth - 1)

    seen = watch(Recursive())
    with torch.no_grad():
        seen.model(batch())
    assert seen.log == ["forward"]


def test_an_error_at_the_gate_comes_out_of_the_forward_and_leaves_no_iteration(watch):
    model = make_model()
    seen = watch(model)
    seen.gate.error = torch.OutOfMemoryError("no room")
    with pytest.raises(torch.OutOfMemoryError):
        model(batch())
    seen.gate.error = None
    with torch.no_grad():
        model(batch())
    assert seen.log == ["closed", "forward"]


def test_an_uncaught_exception_closes_the_lease_and_is_still_reported(watch, monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: reported.append(error[0]))
    seen = watch(make_model())
    sys.excepthook(ValueError, ValueError("x"), None)
    assert seen.log == ["closed"]
    assert reported == [ValueError]


def test_a_detached_watcher_leaves_nothing_in_use():
    from torch.optim import optimizer as torch_optimizer

    model = make_model()
    excepthook, update = sys.excepthook, torch.amp.GradScaler.update
    engine = torch.autograd._engine_run_backward
    watched = Watched(model)
    watched.watcher.detach()
    assert torch.autograd._engine_run_backward is engine
    assert "_compiled_call_impl" not in vars(model)
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    assert not torch_optimizer._global_optimizer_pre_hooks
    assert not torch_optimizer._global_optimizer_post_hooks
    assert (sys.excepthook, torch.amp.GradScaler.update) == (excepthook, update)


def test_the_model_is_not_kept_alive(watch):
    import gc
    import weakref

    model = make_model()
    reference = weakref.ref(model)
    seen = watch(model)
    del model, seen.model
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_copy_of_the_model_is_not_watched(watch, duplicate):
    seen = watch(make_model())
    twin = duplicate(seen.model)
    with torch.no_grad():
        twin(batch())
    assert seen.log == []


@pytest.mark.parametrize("is_first", [True, False])
def test_a_compiled_model_has_boundaries_and_the_same_results(watch, is_first):
    plain = make_model()
    expected = plain(batch())
    num_operations = []

    def backend(graph, _inputs):
        num_operations.append(len(graph.graph.nodes))
        return graph

    compiled = torch.compile(plain, backend=backend)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.0)
    seen = watch(plain if is_first else compiled)
    for _ in range(3):
        assert torch.equal(compiled(batch()), expected)
        compiled(batch()).sum().backward()
        optimizer.step()
    assert seen.log == ["optimizer*"] * 3
    assert max(num_operations) >= 5  # the three layers are one graph
    torch._dynamo.reset()


def test_a_model_that_compiles_itself_has_boundaries(watch):
    model = make_model()
    model.compile(backend="eager")
    seen = watch(model)
    with torch.no_grad():
        model(batch())
    assert seen.log == ["forward"]
    torch._dynamo.reset()
