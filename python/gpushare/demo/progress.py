"""Live progress: which scene runs, and how far each job is."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

if TYPE_CHECKING:
    from rich.console import Console

    from gpushare.demo.workload import Workload


_REFRESHES_PER_SECOND = 4
"""Low: what is drawn takes time from the jobs that are timed."""


class SceneProgress:
    """A bar a job where the console is a terminal, else a line a scene."""

    def __init__(self, console: Console, workloads: Sequence[Workload]) -> None:
        """Draws nothing yet.

        Args:
            console: Where to draw; standard error if standard output carries JSON.
            workloads: The jobs.
        """
        self._console = console
        self._workloads = workloads
        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description:<30}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> SceneProgress:
        """Starts to draw."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Takes the bars away."""
        self._progress.stop()

    def begin_scene(self, title: str, num_iterations: int | None = None) -> None:
        """Shows that a scene begins.

        Args:
            title: Its name.
            num_iterations: Of each job, where these are not the workload's own.
        """
        if not self._console.is_terminal:
            self._console.print(f"running: {title}", highlight=False)
            return
        for task in self._progress.task_ids:
            self._progress.remove_task(task)
        self._progress.add_task(f"[bold]{title}", total=None)
        self._tasks = {
            workload.name: self._progress.add_task(
                f"  {workload.name}",
                total=workload.shortened(num_iterations or workload.num_iterations).num_iterations,
            )
            for workload in self._workloads
        }

    def on_iteration(self, name: str, number: int) -> None:
        """Shows how far a job is."""
        task = self._tasks.get(name)
        if task is not None:
            self._progress.update(task, completed=number)
