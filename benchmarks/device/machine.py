"""The device that the device suite runs on: this machine's GPU, or the fake one in its place.

DEVICE_SUITE_FAKE=1 chooses the fake CUDA device of tests/fakecuda: everything runs there, with tiny
sizes, and no figure means anything. The parent of a measurement takes its children's environment
from `device()`; a child calls `start()` after `import torch`. DEVICE_SUITE_DEVICE=1 says that the
suite has seen the device already: looking for it takes seconds of each process that does.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

FAKE_BYTES = 2 << 30
MIB = 1 << 20


def is_fake() -> bool:
    """Whether the fake device was asked for."""
    return os.environ.get("DEVICE_SUITE_FAKE") == "1"


def missing() -> str:
    """Why nothing can run here; "" if it can. Makes no context."""
    if is_fake() or os.environ.get("DEVICE_SUITE_DEVICE") == "1":
        return ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch says of itself is no test's business
        import torch

    if torch.version.cuda is None:
        return f"torch {torch.__version__} was built without CUDA"
    if not torch.cuda.is_available():
        return "torch sees no CUDA device (DEVICE_SUITE_FAKE=1: the fake one)"
    return ""


@contextlib.contextmanager
def device(**fake_settings: object) -> Iterator[dict[str, str]]:
    """The environment of processes that share the device; `fake_settings` as fake.environment's."""
    if not is_fake():
        yield {"GPUSHARE_ANY_TORCH": "1"}
        return
    from tests.cuda import fake

    shm = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="fakecuda-", dir=shm) as folder:
        settings = {"capacity_bytes": FAKE_BYTES, **fake_settings}
        yield fake.environment(device_file=Path(folder) / "device", **settings) | {
            "GPUSHARE_ANY_TORCH": "1"
        }


def start() -> None:
    """In a process of the device's, after `import torch`: operators run there."""
    if is_fake():
        from tests.cuda import fake

        fake.install_ops()


def size(real: int, fake: int) -> int:
    """One of the two: what a GPU is worth measuring with, and what shows that it works."""
    return fake if is_fake() else real
