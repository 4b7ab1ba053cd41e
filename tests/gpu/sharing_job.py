"""Run as a process: a job that sends a CUDA tensor to a child, and says what came of it."""

from __future__ import annotations

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
    sender_error = ""
    try:
        # What the queue's own thread does, here where its error can be seen.
        context.reducer.ForkingPickler.dumps(tensor)
        tensors.put(tensor)
        answer = answers.get(timeout=60)
    except queue.Empty:
        answer = "no answer"
    except Exception as error:
        sender_error = f"{type(error).__name__}: {error}"
        answer = ""
    child.kill()
    child.join()
    print(json.dumps({"answer": answer, "sender_error": sender_error}), flush=True)


if __name__ == "__main__":
    main()
