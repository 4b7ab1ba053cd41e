"""CUDA tensors through multiprocessing: their memory is handed over, and is one."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from tests.cuda import fake
from tests.cuda.child import Parent, start
from tests.cuda.programs import run
from tests.support.job_process import JobProcess

MIB = 1 << 20

PROGRAM = """
import sys
import gpushare
import torch
import torch.multiprocessing as mp
from tests.cuda import fake

def child(queue, answers):
    fake.install_ops()
    tensor = queue.get()
    answers.put(tensor.cpu().sum().item())
    tensor.add_(1)
    torch.cuda.synchronize()
    answers.put("written")
    queue.get()

if __name__ == "__main__":
    fake.install_ops()
    model = torch.nn.Linear(256, 256).cuda()
    job = gpushare.register(model)
    assert job.is_managed
    whole = torch.arange(100_000, dtype=torch.float64).cuda()
    part = whole[10:]
    before = whole.data_ptr()
    context = mp.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(queue, answers))
    process.start()
    queue.put(whole)
    assert answers.get() == 99_999 * 100_000 / 2
    assert whole.data_ptr() != before, "it lies in a segment of the runtime's now"
    assert part.data_ptr() == whole.data_ptr() + 80, "its views went with it"
    assert answers.get() == "written"
    assert part[0].item() == 11, "one memory, not two"
    for _ in range(3):
        model(torch.randn(4, 256).cuda()).sum().backward()
        job.step()
    queue.put("end")
    process.join()
    print("done", process.exitcode)
"""


def test_a_tensor_in_a_queue_is_one_memory(
    device: Callable[..., dict[str, str]],
    coordinator: Callable[..., dict[str, str]],
    tmp_path: Path,
) -> None:
    script = tmp_path / "share.py"
    script.write_text(PROGRAM)
    env = device(256 << 20) | coordinator(require="1")
    done = subprocess.run(
        [sys.executable, str(script)],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["done", "0"], done.stderr


# A small one is shared, so that there is a block for another: what asks CUDA for memory waits for
# all work.
START = """
import json
import gpushare, torch
from tests.cuda import fake
fake.install_ops()
{before}
job = gpushare.register()
job.iteration().__enter__()
first, shared, large = (torch.full((size,), 1.0, device="cuda") for size in (1000, 1000, 16 << 20))
first.untyped_storage()._share_cuda_()
torch.cuda.synchronize()
side = torch.cuda.Stream()
"""
# What torch does then makes the fake device wait, where a GPU would not.
NOTHING = "torch.UntypedStorage._share_cuda_ = lambda storage: None"
PENDING = (
    START.format(before=NOTHING)
    + """
with torch.cuda.stream(side):
    shared.add_(1)
before = fake.num_pending()
shared.untyped_storage()._share_cuda_()
with torch.cuda.stream(side):
    shared.add_(1)
torch.cuda.synchronize()
print(json.dumps([before, fake.violations(), shared.cpu().unique().tolist()]))
"""
)


def _said(program: str, env: dict[str, str]) -> list[object]:
    ended = run("-c", program, env=env)
    assert ended.returncode == 0, ended.stderr
    said: list[object] = json.loads(ended.stdout.splitlines()[-1])
    return said


def test_the_work_of_other_streams_is_waited_for(
    device: Callable[..., dict[str, str]], coordinator: Callable[..., dict[str, str]]
) -> None:
    env = device(256 * MIB, late=True) | coordinator(require="1")
    num_pending, violations, values = _said(PENDING, env)
    assert num_pending == 1
    assert violations == []
    assert values == [3.0]


NO_ROOM = (
    START.format(before="")
    + """
filler = torch.empty(16 << 20, device="cuda")
storage, before = large.untyped_storage(), large.data_ptr()
try:
    storage._share_cuda_()
    error = ""
except torch.OutOfMemoryError as failure:
    error = type(failure).__name__
after = [large.data_ptr() == before, storage.nbytes(), large.cpu().unique().tolist()]
del filler
storage._share_cuda_()
print(json.dumps([error, *after, large.data_ptr() == before, large.cpu().unique().tolist()]))
"""
)


def test_a_storage_without_room_elsewhere_stays_what_it_is(
    device: Callable[..., dict[str, str]], coordinator: Callable[..., dict[str, str]]
) -> None:
    env = device(160 * MIB) | coordinator(require="1")
    error, *after, is_in_place_later, values_later = _said(NO_ROOM, env)
    assert error == "OutOfMemoryError"
    assert after == [True, 64 * MIB, [1.0]]
    assert (is_in_place_later, values_later) == (False, [1.0])


def shares_from_a_thread_while_it_is_parked(parent: Parent) -> list[object]:
    """A child: what a queue's own thread does."""
    import torch

    import gpushare

    job = gpushare.register()
    with job.iteration():
        tensor = torch.full((16 << 20,), 7.0, device="cuda")
    job.park()
    parent.say("parked")
    parent.hear()
    thread = threading.Thread(target=tensor.untyped_storage()._share_cuda_)
    spilled_bytes = job.stats().spilled_bytes
    thread.start()
    thread.join()
    return [spilled_bytes, tensor.cpu().unique().tolist(), fake.violations()]


def test_what_is_away_comes_back_to_be_shared(
    device_file: Path, coordinator: Callable[..., dict[str, str]]
) -> None:
    settings = coordinator(require="1", min_quantum="0")
    size = {"capacity_bytes": 160 * MIB, "device_file": device_file}
    sharer = start(shares_from_a_thread_while_it_is_parked, **size, **settings)
    assert sharer.hear() == "parked"
    env = fake.environment(**size) | settings
    with JobProcess("--steps", "2", "--poison", env=env, module="tests.cuda.gap_job") as other:
        assert other.wait_ready().go().result()["num_wrong"] == 0
    sharer.say("go on")
    spilled_bytes, values, violations = sharer.result()
    assert spilled_bytes > 0
    assert (values, violations) == ([7.0], [])
