"""Calls back once torch is loaded, without loading it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


def when_torch_is_loaded(callback: Callable[[], None]) -> None:
    """Calls ``callback`` now if torch is loaded, else right after its import has ended.

    Args:
        callback: Called once. What it raises comes out of ``import torch``.
    """
    if "torch" in sys.modules:
        callback()
    else:
        sys.meta_path.insert(0, _TorchFinder(callback))


class _TorchFinder(importlib.abc.MetaPathFinder):
    """Finds torch through the other finders, and wraps what would load it."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch":
            return None
        # Several of these may wait for torch: each steps aside and asks the rest.
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            sys.meta_path.insert(0, self)
            return None
        spec.loader = _CallbackLoader(spec.loader, self._callback)
        return spec


class _CallbackLoader(importlib.abc.Loader):
    """A loader that calls back once the module has been executed."""

    def __init__(self, inner: importlib.abc.Loader, callback: Callable[[], None]) -> None:
        self._inner = inner
        self._callback = callback

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Whoever asks the module (importlib.resources, pkgutil) meets the real loader: each of
        # several wrappers takes itself off before it runs the next.
        module.__loader__ = self._inner
        if module.__spec__ is not None:
            module.__spec__.loader = self._inner
        self._inner.exec_module(module)
        self._callback()
