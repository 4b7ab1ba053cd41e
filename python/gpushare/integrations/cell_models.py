"""Finds the model of each cell of a notebook, where ``auto.Finder`` finds one for a program.

A cell may train one model, the next evaluate another. So the search begins anew with each cell. The
first module with parameters that the cell calls is taken at once, so that a cell that only
evaluates has boundaries. If an optimizer has another module's parameters, that one takes its place
when it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpushare import auto

if TYPE_CHECKING:
    import torch

_MOST_CALLS = 1000
"""So many calls of a cell are looked at, since each look takes time."""


class CellModels(auto.Finder):
    """Watches the calls of modules, from the begin of each cell until its model is found."""

    def __init__(self, take: Callable[[torch.nn.Module], None]) -> None:
        """``take`` is told of each module that is the cell's model from now on."""
        super().__init__()
        self._take = take
        self._is_any_taken = False
        self._num_calls = 0

    def begin_cell(self) -> None:
        """Looks for a model again."""
        self._is_any_taken, self._num_calls = False, 0
        if not (self._is_watching or self._is_done):
            self._watch_calls()

    def is_model(self, module: torch.nn.Module) -> bool:
        """Tells whether the search ends with this module; takes the first one in any case."""
        self._num_calls += 1
        if super().is_model(module):
            return True
        if not self._is_any_taken and auto.is_on_shared_device(module):
            self._is_any_taken = next(module.parameters(), None) is not None
            if self._is_any_taken:
                self._take(module)
        return self._num_calls >= _MOST_CALLS

    def found(self, module: torch.nn.Module) -> None:
        """The search ends: this is the cell's model, or too many calls were looked at."""
        self._is_watching = False
        if super().is_model(module):
            self._take(module)
