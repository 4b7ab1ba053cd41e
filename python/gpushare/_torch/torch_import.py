"""Calls back once torch is loaded, without loading it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


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
    """Finds torch through the finders after it, and wraps what would load it.

    It stays until torch is loaded. Programs look for torch without loading it, and load it later.
    """

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        finders = list(sys.meta_path)
        if fullname != "torch" or self not in finders:
            return None
        # Those before it were asked, and did not find it. Those after it may be its like.
        for finder in finders[finders.index(self) + 1 :]:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _CallbackLoader(spec.loader, self._call_back_once)
                return spec
        return None

    def _call_back_once(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._callback()


class _CallbackLoader(importlib.abc.Loader):
    """A loader that calls back once the module has been executed."""

    def __init__(self, inner: importlib.abc.Loader, callback: Callable[[], None]) -> None:
        self._inner = inner
        self._callback = callback

    def __getattr__(self, name: str) -> Any:
        """Answers who asks a loader that was only looked up, such as for the file's name."""
        return getattr(self._inner, name)

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
