"""A small training job that says each iteration: its number, its loss and at times a digest.

The lines depend on the seed alone. So the lines of a job under gpushare, up to its last word, must
equal the first lines of the same run alone. A line that begins with "{" is about the process and is
not compared.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

FORMS = ("plain", "marked", "gaps")
DIGEST_EVERY = 10
GAP_SECONDS = 0.01
WIDTH, HIDDEN, BATCH = 512, 768, 8
OUT_OF_MEMORY, OWN_ERROR = 3, 4
"""Exit codes of a job that was refused memory, and of one that gpushare gave another error."""

_CLONE_NEWTIME = 0x80


def arguments(*, seed: int, iterations: int, **more: Any) -> list[str]:
    """The command line of this job."""
    options = {"seed": seed, "iterations": iterations, **more}
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def main() -> None:
    """Trains; see the module's text for what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--name", default="", help="registers, under this name")
    parser.add_argument("--form", choices=FORMS, default=FORMS[0])
    parser.add_argument("--clock", type=int, default=0, help="seconds that its clock is ahead")
    options = parser.parse_args()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    if options.clock:
        enter_other_clock(options.clock)
    errors: tuple[type[Exception], ...] = ()
    if options.name:
        import gpushare
        from gpushare.errors import GpushareError

        errors = (GpushareError,)
    import torch

    try:
        _train(options, gpushare if options.name else None)
    except torch.OutOfMemoryError as error:
        _say(out_of_memory=str(error))
        sys.exit(OUT_OF_MEMORY)
    except errors as error:
        _say(error=f"{type(error).__name__}: {error}")
        sys.exit(OWN_ERROR)


def _train(options: argparse.Namespace, gpushare: Any) -> None:
    import torch

    torch.manual_seed(options.seed)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, WIDTH))
    optimizer = torch.optim.Adam(model.parameters())
    job: Any = gpushare.register(model, optimizer, name=options.name) if gpushare else None
    reason = ""
    for number in range(options.iterations):
        is_marked = job and options.form == "marked"
        with job.iteration() if is_marked else contextlib.nullcontext():
            optimizer.zero_grad()
            x = torch.randn(BATCH, WIDTH)
            loss = torch.nn.functional.mse_loss(model(x), x)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        line = f"{number} {float(loss.item()).hex()}"
        if number % DIGEST_EVERY == DIGEST_EVERY - 1:
            line += f" {_digest(model)}"
        print(line, flush=True)
        if job is not None and not reason and not job.is_managed:
            reason = job.stats().unmanaged_reason
            _say(unmanaged=reason)
        if job is not None and options.form == "gaps":
            time.sleep(GAP_SECONDS)
    stats = {}
    if job is not None:
        stats = {name: value for name, value in vars(job.stats()).items() if name in _TOLD}
        job.close()
    _say(done=True, **stats)


_TOLD = ("reconnects", "leases", "spilled_total_bytes", "restored_total_bytes", "interruptions")


def _digest(model: Any) -> str:
    """The digest of the parameters. It is read in the gap, where they may be spilled."""
    digest = hashlib.blake2b(digest_size=8)
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    return digest.hexdigest()


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def enter_other_clock(seconds: int) -> None:
    """Sets this process's CLOCK_MONOTONIC so far ahead of the machine's; needs root.

    Raises:
        OSError: The kernel has no time namespaces, or this user may not make one.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_CLONE_NEWTIME), "unshare")
    Path("/proc/self/timens_offsets").write_text(f"monotonic {seconds} 0\nboottime {seconds} 0\n")
    # Without this call only a child would be in the new namespace.
    namespace = os.open("/proc/self/ns/time_for_children", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(libc.setns(namespace, _CLONE_NEWTIME), "setns")
    finally:
        os.close(namespace)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
