"""Run as a process: a job that sends a CUDA tensor to a child, and says what came of it."""

from __future__ import annotations

import contextlib
import json
import queue
from typing import Any

import torch

from benchmarks.device import machine


def _receive(tensors: Any, answers: Any) -> None:
    machine.start()
    try:
        answers.put(tensors.get(timeout=30).cpu().sum().item())
    except BaseException as error:
        answers.put(f"{type(error).__name__}: {error}")


def main() -> None:
    """Says the child's sum, or its error, or the sender's."""
    import gpushare

    machine.start()
    job = gpushare.register(torch.nn.Linear(8, 8).to("cuda"))
    context = torch.multiprocessing.get_context("spawn")
    tensors, answers = context.Queue(), context.Queue()
    child = context.Process(target=_receive, args=(tensors, answers))
    child.start()
    with job.iteration():
        tensor = torch.ones(1 << 20).to("cuda")
    sender_error, answer, is_equal = "", None, False
    try:
        # What the queue's own thread does, here where its error can be seen.
        context.reducer.ForkingPickler.dumps(tensor)
        tensors.put(tensor)
        answer = answers.get(timeout=60)
        is_equal = _is_equal_after_spill(tensor)
    except queue.Empty:
        answer = "no answer"
    except Exception as error:
        sender_error = f"{type(error).__name__}: {error}"
    child.kill()
    child.join()
    said = {"answer": answer, "sender_error": sender_error, "is_equal_after_spill": is_equal}
    print(json.dumps(said), flush=True)


def _is_equal_after_spill(tensor: torch.Tensor) -> bool:
    """What is shared stays; the error says that not all has moved."""
    from gpushare import _native
    from gpushare.errors import GpushareError

    with contextlib.suppress(GpushareError):
        _native.load().spill_and_restore()
    return torch.equal(tensor.cpu(), torch.ones(1 << 20))


if __name__ == "__main__":
    main()
