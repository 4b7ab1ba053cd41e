"""Forked children that train: each is a job of its own, with memory of its own."""

BEGIN = """
import os, gpushare, torch
from gpushare import _native
torch.set_num_threads(1)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(model=model, optimizer=optimizer):
    loss = model(torch.ones(4, 64)).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def in_child(function):
    pid = os.fork()
    if pid == 0:
        try:
            function()
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def is_ours(tensor):
    first, size = _native.load().reserved_range()
    return first <= tensor.data_ptr() < first + size
"""


def test_a_child_may_register_and_so_may_its_own(run_forked, coordinator):
    run_forked(
        BEGIN
        + """
kept = [torch.full((1000,), float(i)) for i in range(64)]
parent = gpushare.register(model, optimizer)
step()


def child(depth=2):
    assert gpushare.current() is None and not _native.is_installed()
    between = torch.ones(1000)
    own = gpushare.register(model, optimizer)
    step(), step()
    assert own.is_managed and own.number != parent.number
    assert own.stats().iterations == 2
    made = torch.ones(1000)
    assert is_ours(made) and not is_ours(between) and not is_ours(kept[1])
    assert all(bool((x == i).all()) for i, x in enumerate(kept))
    before = gpushare.stats.memory_allocated()
    if depth == 1:
        kept.clear()  # the parent's: nothing of it is freed here
    assert gpushare.stats.memory_allocated() == before
    if depth > 1:
        in_child(lambda: child(depth - 1))
        step()
        assert own.stats().iterations == 3 and own.is_managed


in_child(child)
step()
assert parent.stats().iterations == 2 and parent.is_managed
assert all(bool((x == i).all()) for i, x in enumerate(kept))
""",
        **coordinator,
    )


def test_under_run_a_child_that_trains_is_a_job_and_one_that_evaluates_is_none(
    run_forked, coordinator
):
    run_forked(
        BEGIN
        + """
step()
parent = gpushare.current()
assert parent.is_managed


def evaluates():
    with torch.no_grad():
        model(torch.ones(4, 64))
    assert gpushare.current() is None and not _native.is_installed()


def goes_on():
    step(), step(), step()
    own = gpushare.current()
    assert own.is_managed and own.number != parent.number and own.stats().iterations > 0


def begins():
    model = torch.nn.Linear(64, 64)
    assert is_ours(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(model, optimizer), step(model, optimizer)
    assert gpushare.current().is_managed and gpushare.current().stats().iterations == 2


for each in (evaluates, goes_on, begins):
    in_child(each)
step()
assert gpushare.current() is parent and parent.is_managed
""",
        **coordinator | {"run": "1"},
    )
