"""Safepoints: a job that cannot wait is served inside an iteration of another job."""

from __future__ import annotations

import contextlib
import copy
import json
import pickle
import subprocess
import threading
from pathlib import Path

import pytest
import torch

from gpushare._torch import safepoints
from tests.python.conftest import clean_environment
from tests.support import forked

JOB = Path(__file__).with_name("safepoint_job.py")
ALONE = f"""
import sys, torch
sys.path.insert(0, {str(JOB.parent)!r})
import safepoint_job
torch.set_num_threads(1)
print(safepoint_job.train(is_alone=True)["digest"])
"""


GUARANTEED = {
    "serve": {"priority": "guaranteed", "policy": "priority"},
    "train": {"priority": "opportunistic"},
}
LATE = {"serve": {"deadline": "1ms", "policy": "deadline"}, "train": {}}
"""It would be late after the boundary."""


class Started:
    """One process of safepoint_job.py."""

    def __init__(self, process):
        self.process = process

    def wait(self, line):
        said = self.process.stdout.readline()
        assert said == f"{line}\n", said + self.process.communicate()[1]

    def tell(self, line=""):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def finish(self):
        out, err = self.process.communicate(timeout=100)
        assert self.process.returncode == 0, err
        return json.loads(out.splitlines()[-1])


@pytest.fixture
def start(coordinator):
    """start(what, VARIABLE="value", setting="value") -> a job's process; it ends with the test."""
    with contextlib.ExitStack() as processes:

        def start_one(what, env=None, **settings):
            whole = clean_environment(report="0", **coordinator | settings)
            process = processes.enter_context(
                forked.start(
                    [str(JOB), what],
                    whole | (env or {}),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            )
            processes.callback(process.kill)
            started = Started(process)
            started.wait("ready")
            return started

        yield start_one


@pytest.fixture
def begin(start):
    """Both jobs, the one that trains in the middle of an iteration."""

    def begin_both(where="forward", then="", urgent=GUARANTEED, **settings):
        serve = start("serve", **settings | urgent["serve"])
        train = start("train", {"WHERE": where, "THEN": then}, **settings | urgent["train"])
        serve.tell()
        serve.wait("warm")
        train.tell()
        train.wait("inside")
        return serve, train

    return begin_both


@pytest.mark.usefixtures("module_is_built")
@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("lanes", ["on", "off"])
def test_an_urgent_job_is_served_inside_an_iteration(begin, run_forked, where, lanes):
    serve, train = begin(where, lanes=lanes)
    serve.tell("go")
    serve.wait("served")
    serve.tell("end")
    trained = train.finish()
    assert trained["inside"] == 1
    assert trained["iterations"] == 4  # of which the one that was interrupted is none yet
    assert trained["stats"]["iterations"] == 6
    assert trained["digest"] == run_forked(ALONE, disable="1").stdout.split()[-1]
    assert trained["stats"]["spilled_total_bytes"] == 0
    served = serve.finish()
    assert served["stats"]["interruptions"] == 0
    for job in (trained, served):
        assert (job["stats"]["lane_bytes"] > 0) == (lanes == "on")


@pytest.mark.usefixtures("module_is_built")
def test_a_job_that_would_be_late_is_served_inside_an_iteration(begin):
    serve, train = begin(urgent=LATE)
    serve.tell("go")
    serve.wait("served")
    serve.tell("end")
    assert train.finish()["inside"] == 1
    serve.finish()


@pytest.mark.usefixtures("module_is_built")
def test_without_safepoints_it_waits_for_the_boundary(begin):
    serve, train = begin(safepoints="0")
    serve.tell("go")
    serve.wait("served")
    serve.tell("end")
    trained = train.finish()
    assert trained["inside"] == 0
    assert trained["stats"]["interruptions"] == 0


@pytest.mark.usefixtures("module_is_built")
def test_ctrl_c_at_a_safepoint_ends_the_wait(begin):
    serve, train = begin(then="interrupt")
    serve.tell("stay")
    serve.wait("staying")  # until told otherwise: nobody gives the other one its lease back
    assert train.process.stdout.readable()
    serve.tell()
    serve.wait("served")
    serve.tell("end")
    serve.finish()
    trained = train.finish()
    assert trained["raised"] == "KeyboardInterrupt"
    assert trained["state"] == "kIdle"
    assert trained["stats"]["iterations"] == 5


@pytest.mark.usefixtures("module_is_built")
def test_an_exception_after_a_safepoint_ends_the_iteration(begin):
    serve, train = begin(then="fail")
    serve.tell("go")
    serve.wait("served")
    serve.tell("end")
    serve.finish()
    trained = train.finish()
    assert trained["inside"] == 1
    assert trained["raised"] == "RuntimeError"
    assert trained["stats"]["iterations"] == 5


@pytest.mark.usefixtures("module_is_built")
def test_a_job_that_is_killed_where_it_stopped_leaves_the_device_to_the_others(begin):
    serve, train = begin()
    serve.tell("stay")
    serve.wait("staying")
    train.process.kill()
    train.process.wait()
    serve.tell()
    serve.wait("served")
    for _ in range(3):
        serve.tell("go")
        serve.wait("served")
    serve.tell("end")
    assert serve.finish()["stats"]["iterations"] == 8


NOBODY = """
import torch, gpushare
job = gpushare.register(torch.nn.Linear(8, 8))
import gpushare._C as native
with job.iteration():
    print(native.safepoint(False), native.safepoint(True))
"""


@pytest.mark.usefixtures("module_is_built")
def test_where_nobody_may_interrupt_no_backward_is_hooked(run_forked, coordinator):
    assert run_forked(NOBODY, **coordinator).stdout.split()[-2:] == ["False", "False"]


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Linear(8, 8)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(3))
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.norm(x)


class Language(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = Transformer()
        self.head = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.head(self.transformer(x))


def test_blocks_are_children_and_elements_of_lists():
    model = Language()
    inner = model.transformer
    whole = [inner.embedding, *inner.layers, inner.norm, model.head]
    assert safepoints.blocks_of(model) == whole
    assert safepoints.blocks_of(torch.nn.Sequential(model)) == whole
    assert safepoints.blocks_of(torch.nn.Linear(8, 8)) == []
    pair = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    assert safepoints.blocks_of(torch.nn.Sequential(pair, pair[0])) == list(pair)


@pytest.fixture
def watched():
    """watched(model) -> a list that grows with each safepoint."""
    stops = []
    undo = []

    def watch(model):
        iterating = threading.get_ident()

        def stop(is_in_backward):
            if not is_in_backward and threading.get_ident() != iterating:
                return False
            stops.append(is_in_backward)
            return True

        undo.append(safepoints.attach(model, stop))
        return stops

    yield watch
    for each in undo:
        each()


def test_forward_and_backward_stop_at_each_block(watched):
    model = Language()
    stops = watched(model)
    result = model(torch.randn(2, 8))
    assert len(stops) == 6
    result.sum().backward()
    assert stops == [False] * 6 + [True] * 6


def test_another_thread_that_calls_a_copy_is_left_alone(watched):
    model = Language()
    stops = watched(model)
    other = copy.deepcopy(model)
    thread = threading.Thread(target=lambda: other(torch.randn(2, 8)).sum().backward())
    thread.start()
    thread.join()
    assert stops == []


class Encoded(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Linear(8, 8)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.encoder(self.embedding(x)))


def test_an_encoder_layer_computes_as_it_does_alone(watched, monkeypatch):
    model = Encoded().eval()
    calls = []
    fast = torch._transformer_encoder_layer_fwd

    def counted(*arguments):
        calls.append(None)
        return fast(*arguments)

    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", counted)
    x = torch.randn(2, 3, 8)
    with torch.no_grad():
        alone = model(x)
        assert len(calls) == 2, "torch takes no fast path here: this shows nothing"
        stops = watched(model)
        assert torch.equal(model(x), alone)
    assert len(calls) == 4
    assert stops == [False] * 4


class Twice(torch.nn.Module):
    def forward(self, x):
        return x * 2


def test_a_registered_model_can_be_traced(watched):
    model = torch.nn.Sequential(Twice(), Twice())
    watched(model)
    x = torch.randn(2, 8)
    assert torch.equal(torch.fx.symbolic_trace(model)(x), model(x))


def test_a_tensor_that_blocks_pass_on_has_one_hook(watched):
    model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())
    stops = watched(model)
    x = torch.randn(2, 8, requires_grad=True) * 2
    for _ in range(3):
        result = model(x)
    assert result.grad_fn is x.grad_fn
    result.sum().backward()
    assert stops == [False] * 6


def test_copies_and_pickles_carry_nothing(watched):
    model = Language()
    stops = watched(model)
    other = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    other(torch.randn(2, 8)).sum().backward()
    assert stops == []


def test_compiled_code_has_no_safepoint_and_no_break(watched):
    model = Language()
    stops = watched(model)
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(model, backend=backend, fullgraph=True)
    x = torch.randn(2, 8)
    for _ in range(3):
        compiled(x).sum().backward()
    assert len(graphs) == 1
    assert stops == []
    assert torch.equal(compiled(x), model(x))


def test_transforms_of_functions_are_left_alone(watched):
    model = Language()
    watched(model)
    x = torch.randn(2, 8)
    parameters = dict(model.named_parameters())

    def loss(parameters):
        return torch.func.functional_call(model, parameters, (x,)).sum()

    expected = torch.autograd.grad(loss(parameters), list(parameters.values()))
    found = torch.func.grad(loss)(parameters)
    assert all(map(torch.equal, found.values(), expected))


def test_checkpointed_blocks_are_as_they_were(watched):
    from torch.utils.checkpoint import checkpoint_sequential

    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
    x = torch.randn(2, 8)
    model(x).sum().backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    watched(model)
    for reentrant in (False, True):
        y = x.clone().requires_grad_()
        checkpoint_sequential(model, 2, y, use_reentrant=reentrant).sum().backward()
        assert all(
            torch.equal(parameter.grad, before)
            for parameter, before in zip(model.parameters(), expected, strict=True)
        )
        model.zero_grad()
