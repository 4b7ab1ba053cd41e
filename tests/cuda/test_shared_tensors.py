"""CUDA tensors through multiprocessing: their memory is handed over, and is one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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
