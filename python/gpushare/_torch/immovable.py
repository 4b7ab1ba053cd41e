"""A job's memory that cannot move: older than ``import gpushare``, or not made by torch."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from gpushare._torch.optimizer_state import storage_place, tensors_in
from gpushare._torch.unseen import unseen
from gpushare.errors import say_once

if TYPE_CHECKING:
    import torch

_LEAST_FOREIGN_BYTES = 1 << 20
"""Small tensors around numpy arrays or constants of torch are common, and no harm."""

_origin = ""
"""Since when memory is gpushare's, if torch was there before; "" if no tensor can be older."""
_advice = ""
"""What makes that earlier."""
_is_said = False


def note_import() -> None:
    """Remembers who imports gpushare, where that comes after torch."""
    global _origin, _advice
    if "torch" in sys.modules:
        _origin = f'"import gpushare" ({_importing_line(sys._getframe())})'
        _advice = "Import it first, or use gpushare run"


def note_late_choice() -> None:
    """Remembers that ``register`` chose the CPU, when torch had been loaded for long."""
    global _origin, _advice
    if not _origin:
        _origin, _advice = 'register(device="cpu")', "Set GPUSHARE_DEVICE=cpu instead"


def note_fork() -> None:
    """Remembers that this process was forked, and has memory of its own only from now on."""
    global _origin, _advice, _is_said
    _origin, _advice = "its start by fork", "Start such processes by spawn"
    _is_said = False  # what the parent said was said of the parent


def say_immovable(
    model: torch.nn.Module | None,
    optimizers: Iterable[torch.optim.Optimizer],
    reserved_range: tuple[int, int],
) -> None:
    """Says once how much of a job's state lies outside of gpushare's memory: 1 MiB or more.

    Args:
        model: Its parameters and buffers are looked at.
        optimizers: Their parameters and states are.
        reserved_range: First address and size of the range of all of gpushare's memory.
    """
    from gpushare.cli.units import format_bytes

    global _is_said
    size = immovable_bytes(_state(model, optimizers), reserved_range)
    if _is_said or size < _LEAST_FOREIGN_BYTES:
        return
    _is_said = True
    start = f"{format_bytes(size)} of this job's memory"
    if _origin:
        say_once(
            f"{start} is older than {_origin}, or not made by torch, and cannot move. {_advice}"
        )
    else:
        say_once(f"{start} was not made by torch (but by numpy, or mapped) and cannot move")


def immovable_bytes(tensors: Iterable[Any], reserved_range: tuple[int, int]) -> int:
    """Returns the bytes of CPU storages outside of the range; each storage counts once."""
    base, size = reserved_range
    sizes: dict[int, int] = {}
    with unseen():
        for tensor in tensors:
            address, num_bytes = storage_place(tensor)
            if address and not base <= address < base + size:
                sizes[address] = num_bytes
    return sum(sizes.values())


def _state(
    model: torch.nn.Module | None, optimizers: Iterable[torch.optim.Optimizer]
) -> Iterator[Any]:
    if model is not None:
        yield from model.parameters()
        yield from model.buffers()
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            yield from group["params"]
        yield from tensors_in(optimizer)


def _importing_line(frame: FrameType | None) -> str:
    package = str(Path(__file__).parent.parent)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((package, "<frozen importlib")):
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
    return "somewhere"
