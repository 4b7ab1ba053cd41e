"""Which jobs are alike: a number of the model, by which the coordinator remembers its iterations.

Jobs of one user with the same number begin with what was measured of the one before. Nothing else
follows from it, so a model that changes how it computes, and not its parameters, is measured anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpushare import _native
from gpushare._torch.unseen import unseen
from gpushare.errors import say_once

if TYPE_CHECKING:
    import torch

NONE = 0
OFF = "off"
"""As a profile's name: the job is not remembered."""


def fingerprint(model: torch.nn.Module | None, profile: str, *, device: str) -> int:
    """Returns the job's number, from 1 to 2**64 - 1; ``NONE``: it is like no other job.

    A model that cannot be read has none; the log level debug says why.

    Args:
        model: Wrappers for compilation and for several devices or processes are looked through.
        profile: A name that takes the model's place; "" for the model's own, ``OFF`` for none.
        device: The device that is shared; its kind counts.
    """
    if profile == OFF or (model is None and not profile):
        return NONE
    kind = device.partition(":")[0]
    if profile:
        return _number([kind, "name", profile])
    try:
        inner = _unwrapped(model)
        with unseen():
            words = [kind, type(inner).__module__, type(inner).__qualname__, *_tensors(inner)]
    except (AttributeError, RuntimeError, TypeError) as error:  # as odd modules raise: it is a hint
        if _native.settings().log_level == "debug":
            name = type(model).__qualname__
            say_once(f"{name} is not remembered: {type(error).__name__}: {error}")
        return NONE
    return _number(words)


def _unwrapped(model: Any) -> Any:
    """The model inside of what compiles it, or spreads it over devices."""
    from torch.nn.parallel import DataParallel, DistributedDataParallel

    while True:
        if isinstance(model, DataParallel | DistributedDataParallel):
            model = model.module
        elif "_orig_mod" in model._modules:  # torch.compile's wrapper
            model = model._modules["_orig_mod"]
        else:
            return model


def _tensors(model: torch.nn.Module) -> Iterator[str]:
    """What makes an iteration of one model longer than of another, in the order of the modules.

    Not ``named_parameters()``: half of its time goes into finding tensors that are used twice.
    """
    from torch.nn.parameter import is_lazy

    for prefix, module in model.named_modules():
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is None:
                continue
            shape = "lazy" if is_lazy(tensor) else tuple(tensor.shape)
            yield f"{prefix}.{name} {shape} {tensor.dtype} {tensor.requires_grad}"


def _number(words: list[str]) -> int:
    digest = hashlib.blake2b("\n".join(words).encode(errors="replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1
