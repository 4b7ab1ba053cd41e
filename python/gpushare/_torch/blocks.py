"""What a job does for the length of a ``with`` block: an iteration, and memory held in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpushare import _native

if TYPE_CHECKING:
    from types import TracebackType

    from gpushare._torch.watcher import Watcher


class Hold:
    """While it is entered no memory moves: a context manager, for any thread."""

    def __init__(self, is_managed: bool) -> None:
        """Use ``Job.hold``."""
        self._is_managed = is_managed

    def __enter__(self) -> None:
        if self._is_managed:
            _native.load().hold()

    def __exit__(self, *_error: object) -> None:
        if self._is_managed:
            _native.load().let_go()


class Iteration:
    """One explicit iteration: a context manager."""

    def __init__(self, watcher: Watcher | None) -> None:
        """Use ``Job.iteration``."""
        self._watcher = watcher

    def __enter__(self) -> None:
        if self._watcher is not None:
            self._watcher.watch.begin_iteration()

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._watcher is None:
            return
        if error_type is None:
            self._watcher.watch.end_iteration()
        else:
            self._watcher.watch.fail()
