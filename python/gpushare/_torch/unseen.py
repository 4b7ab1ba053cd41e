"""Looking at a program's tensors without the program seeing it."""

from __future__ import annotations

from contextlib import AbstractContextManager


def unseen() -> AbstractContextManager[object]:
    """A block of gpushare's own calls of torch: no ``__torch_function__`` of the program is asked.

    A program may count what it calls (``TorchFunctionMode``), or have parameters of its own kind.
    """
    import torch

    return torch._C.DisableTorchFunction()
