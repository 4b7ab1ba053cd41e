"""CUDA tensors that another process is to use: they lie where the CUDA runtime itself has put them.

``torch.multiprocessing`` hands a tensor over by a handle of its segment, which CUDA gives for
memory of cudaMalloc alone. So when a storage is shared for the first time, its bytes go to such a
segment, and the storage with all its tensors stays what it is; only addresses that somebody has
noted before, a captured graph say, are void.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

_TRIES = 10


def watch(native: ModuleType) -> None:
    """Has storages moved when torch shares them. Once a process."""
    import torch

    storages: Any = torch.UntypedStorage
    original = storages._share_cuda_
    base, size = native.reserved_range()

    @functools.wraps(original)
    def share(storage: Any, *args: Any, **kwargs: Any) -> Any:
        for _ in range(_TRIES):
            if not (storage.nbytes() and base <= storage.data_ptr() < base + size):
                break
            # Once more if a lease opened or closed meanwhile, and with it other ways.
            _move(storage, native)
        return original(storage, *args, **kwargs)

    storages._share_cuda_ = share


def _move(storage: Any, native: ModuleType) -> None:
    """To a segment of the runtime's own: whatever size a storage is given, it gets new memory.

    If that fails, it keeps what it has. Torch copies on the current stream alone, and orders no
    other one before or behind that.
    """
    import torch

    with torch.cuda.device(storage.device):
        # A queue's thread shares while the main one waits in the gate: its memory may be away.
        native.hold()
        try:
            torch.cuda.synchronize()
            _give_new_memory(storage, native)
            torch.cuda.synchronize()
        finally:
            native.let_go()


def _give_new_memory(storage: Any, native: ModuleType) -> None:
    import torch

    try:
        _resize(storage, native)
    except torch.OutOfMemoryError:
        # Torch 2.9 does not do so itself for a pool that a filter chooses.
        torch.cuda.empty_cache()
        _resize(storage, native)


def _resize(storage: Any, native: ModuleType) -> None:
    native.begin_sharing()
    try:
        storage.resize_(storage.nbytes())
    finally:
        native.end_sharing()
