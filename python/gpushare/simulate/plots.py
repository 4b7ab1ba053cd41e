"""Plots of simulations: completion times, devices in use over time, leases. Needs matplotlib."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpushare.errors import GpushareError

_FORMS = ("svg", "png")
_MOST_BARS = 20_000
"""A chart with more is a grey wall: of more leases those are drawn that begin first."""


def check() -> None:
    """Says what is missing before anything is simulated.

    Raises:
        GpushareError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise GpushareError(
            "--plot needs matplotlib, which is not installed: pip install matplotlib"
        )


def draw(reports: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Draws all plots of these reports, which have rows of jobs and leases.

    Returns:
        The files.

    Raises:
        GpushareError: The folder cannot be written.
    """
    figures = [("completion", _draw_completion(reports)), ("in_use", _draw_use(reports))]
    figures += [(f"leases_{report['policy']}", _draw_leases(report)) for report in reports]
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in figures:
            for form in _FORMS:
                paths.append(folder / f"{name}.{form}")
                figure.savefig(paths[-1])
    except OSError as error:
        raise GpushareError(f"cannot write plots to {folder}: {error.strerror or error}") from error
    return paths


def _figure(x_label: str, y_label: str, title: str) -> tuple[Any, Any]:
    # Not pyplot, which would look for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title)
    return figure, axes


def completion_times(report: dict[str, Any]) -> list[float]:
    """Returns the seconds from arrival to end of the jobs that finished, shortest first."""
    return sorted(
        job["finish_seconds"] - job["arrival_seconds"]
        for job in report["jobs"]
        if job["outcome"] == "finished"
    )


def use_over_time(report: dict[str, Any]) -> list[tuple[float, int]]:
    """Returns (seconds, open leases from then on), one for each time at which that changes."""
    changes: dict[float, int] = {}
    for _, _, begin, end in report["leases"]:
        changes[begin] = changes.get(begin, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    steps = []
    num_open = 0
    for at in sorted(changes):
        if changes[at]:
            num_open += changes[at]
            steps.append((at, num_open))
    return steps


def _draw_completion(reports: Sequence[dict[str, Any]]) -> Any:
    figure, axes = _figure("completion time, s", "share of jobs", "Completion times")
    for report in reports:
        times = completion_times(report)
        shares = [(rank + 1) / len(times) for rank in range(len(times))]
        axes.step(times, shares, where="post", label=report["policy"])
    if any(time > 0 for report in reports for time in completion_times(report)):
        axes.set_xscale("log")
    axes.legend()
    return figure


def _draw_use(reports: Sequence[dict[str, Any]]) -> Any:
    figure, axes = _figure("time, s", "open leases", "Devices in use")
    for report in reports:
        steps = use_over_time(report)
        times, counts = [time for time, _ in steps], [count for _, count in steps]
        axes.step(times, counts, where="post", label=report["policy"], linewidth=0.8)
    axes.legend()
    return figure


def _draw_leases(report: dict[str, Any]) -> Any:
    leases = sorted(report["leases"], key=lambda lease: lease[2])
    drawn = leases[:_MOST_BARS]
    title = f"Leases under {report['policy']}"
    if len(drawn) < len(leases):
        title += f" (the first {len(drawn)} of {len(leases)})"
    figure, axes = _figure("time, s", "job", title)
    axes.barh(
        [job for _, job, _, _ in drawn],
        [end - begin for _, _, begin, end in drawn],
        left=[begin for _, _, begin, _ in drawn],
        color=[f"C{device % 10}" for device, _, _, _ in drawn],
        height=0.9,
    )
    return figure
