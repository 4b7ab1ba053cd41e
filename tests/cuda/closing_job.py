"""A job that closes its lease under pending work. Prints what it sees as one JSON object."""

from __future__ import annotations

import json

import torch

import gpushare
from gpushare import _native
from tests.cuda import fake

UNKNOWN = 999
WAIT = "cuCtxSynchronize"


def main() -> None:
    """Closes with all well, and once with the first wait failing."""
    fake.install_ops()
    tensor = torch.zeros(1 << 20).cuda()
    job = gpushare.register(name="closing")
    native = _native.load()
    stream = torch.cuda.Stream()

    def leave_work() -> int:
        """In the gap after an iteration, whose lease is kept as long as nobody wants it."""
        with job.iteration():
            tensor.add_(1)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            tensor.add_(1)
        torch.cuda.current_stream().wait_stream(stream)
        return fake.num_pending()

    pending = [leave_work()]
    fake.reset_calls()
    native.close_lease("exception")
    num_waits = fake.num_calls(WAIT)
    pending += [fake.num_pending(), leave_work()]
    fake.fail(WAIT, 1, UNKNOWN)
    native.close_lease("exception")
    pending.append(fake.num_pending())
    with torch.cuda.stream(stream):
        tensor.add_(1)  # in the gap: user code may, until its memory has to move
    pending.append(fake.num_pending())
    native.spill_and_restore()
    capture_error = _close_in_capture(job)
    value = tensor[0].item()
    print(
        json.dumps(
            {
                "num_waits": num_waits,
                "pending": pending,
                "value": value,
                "capture_error": capture_error,
                "violations": fake.violations(),
            }
        )
    )


def _close_in_capture(job: gpushare.Job) -> str:
    """Gives the lease up while a stream is captured; what the capture says to it."""
    captured = torch.zeros(1).cuda()
    try:
        with job.iteration(), torch.cuda.graph(torch.cuda.CUDAGraph()):
            captured.add_(1)
            _native.load().close_lease("exception")
    except RuntimeError as error:
        return str(error)
    return ""


if __name__ == "__main__":
    main()
