"""Sends the calls of chosen modules through functions of ours; the modules show nothing of it.

torch's ``Module.__call__`` looks for ``_compiled_call_impl`` and, where that is not None, calls it
instead of ``_call_impl``. The class has it as None, ``Module.compile`` sets it in the instance. We
put a descriptor into the class (``csrc/binding/python/module_calls.cpp``), which answers for the
modules that are watched, and for the others as before. So nothing of ours is in a module: not in
its ``__dict__`` and hooks, nor in what is pickled, copied, scripted, exported or compiled of it.
Only torch's method sees the function; whoever else reads the attribute finds torch's own value.
Compiled code does not ask.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpushare import _native

if TYPE_CHECKING:
    import torch

    from gpushare._C import ModuleCalls

_ATTRIBUTE = "_compiled_call_impl"

_calls: ModuleCalls | None = None
_watched: dict[int, weakref.ref[torch.nn.Module]] = {}
"""By id(), which nobody else has before the reference has called back."""


def watch(module: torch.nn.Module, function: Callable[..., Any]) -> Callable[[], None]:
    """Has each call of the module be ``function(module, *args, **kwargs)``, but in compiled code.

    The function is one of the compiled module's, which makes the call. One function a module: the
    last one.

    Returns:
        What ends it. A module that is freed is forgotten by itself.
    """
    global _calls
    import torch

    if _calls is None:
        _calls = _native.load().ModuleCalls(torch.nn.Module._wrapped_call_impl.__code__)
    if not _watched:
        setattr(torch.nn.Module, _ATTRIBUTE, _calls)
    identity = id(module)
    reference = weakref.ref(module, lambda _: _forget(identity))
    _watched[identity] = reference
    _calls.watch(module, function)

    def undo() -> None:
        if _watched.get(identity) is reference:
            _forget(identity)

    return undo


def _forget(identity: int) -> None:
    assert _calls is not None
    _calls.forget(identity)
    del _watched[identity]
    # At the end of the process nothing can be imported, and nothing is called any more.
    if not _watched and not sys.is_finalizing():
        import torch

        setattr(torch.nn.Module, _ATTRIBUTE, None)
