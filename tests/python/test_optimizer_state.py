"""Which storages are said to be late, and what a job finds of them in an iteration."""

from __future__ import annotations

import torch

from gpushare._torch.optimizer_state import addresses, tensors_in
from tests.python.watched import make_model, train


def address_of(tensor):
    return tensor.untyped_storage().data_ptr()


def test_the_state_is_told_when_there_is_one_and_once_a_lease(watch):
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters())
    seen = watch(model)
    train(model, optimizer)
    assert seen.gate.marked == [[]], "there was none before the first step"
    train(model, optimizer, 3)
    first = model[0].weight
    assert len(seen.gate.marked) == 2
    assert address_of(optimizer.state[first]["exp_avg"]) in seen.gate.marked[1]
    assert address_of(first) not in seen.gate.marked[1]
    seen.gate.num_leases += 1
    optimizer.load_state_dict(optimizer.state_dict())
    train(model, optimizer, 3)
    assert len(seen.gate.marked) == 3


def test_each_optimizer_tells_its_own(watch):
    model = make_model()
    optimizers = [torch.optim.Adam(layer.parameters()) for layer in (model[0], model[2])]
    seen = watch(model)
    for _ in range(3):
        model(torch.ones(2, 4)).sum().backward()
        for optimizer in optimizers:
            optimizer.step()
    told = [len(marks) for marks in seen.gate.marked]
    assert told == [0, 0, 6, 6]


def test_a_step_waits_before_it_begins(watch):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = watch(model)
    waits = []
    optimizer.register_step_pre_hook(lambda *_: waits.append(seen.gate.num_waits))
    train(model, optimizer, 2)
    assert waits == [1, 2]
    assert seen.gate.marked == [[]], "it is told of its state once, while that does not change"


def test_tensors_in_lists_are_state_too():
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    tensors = [torch.zeros(4), torch.zeros(5), torch.zeros(6)]
    optimizer.state[parameter] = {"one": tensors[0], "many": [tensors[1], None], "number": 3}
    optimizer.state["all"] = tensors[2]
    found = list(tensors_in(optimizer))
    assert [tensor.numel() for tensor in found] == [4, 5, 6]


def test_what_has_no_memory_on_the_cpu_has_no_address():
    lazy = torch.nn.LazyLinear(3).weight
    tensors = [torch.zeros(5, device="meta"), torch.eye(3).to_sparse(), lazy]
    assert addresses(tensors) == [0, 0, 0]


# Without a coordinator nobody brings late memory back before the step.
SCRIPT = """
import gpushare, torch
from torch import nn
model = nn.Sequential(nn.Linear(512, 2048, bias=False), nn.Linear(2048, 512, bias=False))
optimizer = torch.optim.Adam(model.parameters())
job = gpushare.register(model, optimizer)
seen = {"forward": [], "backward": [], "step": []}
def look(when):
    seen[when].append(job.stats().spilled_bytes >> 20)
model.register_forward_hook(lambda *_: look("forward"))
optimizer.register_step_pre_hook(lambda *_: look("step"))
for number in range(6):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 512)).square().sum()
    expected = {id(p): s["exp_avg"].sum() for p, s in optimizer.state.items()}
    assert all(expected[id(p)] == s["exp_avg"].sum() for p, s in optimizer.state.items())
    loss.backward()
    look("backward")
    optimizer.step()
assert seen["step"] == [0] * 6, seen
"""


def test_an_iteration_begins_without_optimizer_state_and_the_step_finds_it(run_forked):
    run_forked(
        SCRIPT
        + """
# Adam's two buffers of two weights of 4 MiB: marked in the second step, so away from the third on.
assert seen["forward"][:2] == [0, 0] and min(seen["forward"][2:]) >= 14, seen
assert seen["backward"] == seen["forward"], seen
""",
        force_spill="1",
    )
