"""Plots of simulations: completion times, slow-downs, devices in use, and what each job did when.

Needs matplotlib.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpushare.errors import GpushareError
from gpushare.printable import printable

_FORMS = ("svg", "png")
_NUM_COLUMNS = 400
"""Time is drawn in so many parts, however long it is."""
_MOST_NAMES = 40
"""Of more jobs the names cannot be read, and are left out."""
_UNITS = (("days", 86400.0 * 3), ("h", 3600.0 * 3), ("min", 60.0 * 5), ("s", 0.0))
"""With the least span, in seconds, for which each is used."""
_SECONDS = {"days": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0}
_WAITS, _RUNS = (0.85, 0.85, 0.85), (0.03, 0.25, 0.6)
"""Colours: red, green and blue, each from 0 to 1."""


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
    figures = [
        ("completion", _draw_completion(reports)),
        ("slowdown", _draw_slowdown(reports)),
        ("utilisation", _draw_utilisation(reports)),
    ]
    figures += [(f"jobs_{report['policy']}", _draw_jobs(report)) for report in reports]
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


def unit_of(seconds: float) -> str:
    """Returns the unit, "s", "min", "h" or "days", in which a span of time is drawn."""
    return next(unit for unit, least in _UNITS if seconds >= least)


def finished(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the rows of jobs that finished."""
    return [job for job in report["jobs"] if job["outcome"] == "finished"]


def completion_times(report: dict[str, Any]) -> list[float]:
    """Returns the seconds from arrival to end of the jobs that finished, shortest first."""
    return sorted(job["finish_seconds"] - job["arrival_seconds"] for job in finished(report))


def slowdowns(report: dict[str, Any]) -> list[float]:
    """Returns completion over the time alone of the jobs that finished, least first."""
    return sorted(
        (job["finish_seconds"] - job["arrival_seconds"]) / job["alone_seconds"]
        for job in finished(report)
    )


def spread_over(
    spans: Sequence[tuple[float, float]], begin: float, end: float, num_parts: int
) -> list[float]:
    """Returns how many of the spans (from, to) cover each part of the time, on average."""
    parts = [0.0] * num_parts
    width = (end - begin) / num_parts
    if width <= 0:
        return parts
    for start, stop in spans:
        low, high = max((start - begin) / width, 0.0), min((stop - begin) / width, num_parts)
        for part in range(int(low), min(int(high) + 1, num_parts)):
            parts[part] += max(min(high, part + 1) - max(low, part), 0.0)
    return parts


def _span(report: dict[str, Any]) -> tuple[float, float]:
    """When the first job arrives and the last ends."""
    jobs = report["jobs"]
    if not jobs:
        return 0.0, 0.0
    ends = [job["finish_seconds"] for job in jobs] + [lease[3] for lease in report["leases"]]
    return min(job["arrival_seconds"] for job in jobs), max(ends)


def _new_figure(rows: int = 1, height: float = 4.5) -> tuple[Any, Any]:
    # Not pyplot, which would look for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, 1, squeeze=False)[:, 0]


def _draw_parts_done(
    axes: Any, values: Sequence[Sequence[float]], reports: Sequence[dict[str, Any]]
) -> None:
    for report, each in zip(reports, values, strict=True):
        shares = [(rank + 1) / len(each) for rank in range(len(each))]
        axes.step(each, shares, where="post", label=report["policy"])
    if any(value > 0 for each in values for value in each):
        axes.set_xscale("log")
    axes.set_ylabel("part of the jobs")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()


def _draw_completion(reports: Sequence[dict[str, Any]]) -> Any:
    figure, (axes,) = _new_figure()
    times = [completion_times(report) for report in reports]
    unit = unit_of(max((time for each in times for time in each), default=0.0))
    scaled = [[time / _SECONDS[unit] for time in each] for each in times]
    _draw_parts_done(axes, scaled, reports)
    axes.set_title("Completion times: from arrival to end")
    axes.set_xlabel(f"completion time, {unit}")
    return figure


def _draw_slowdown(reports: Sequence[dict[str, Any]]) -> Any:
    figure, (axes,) = _new_figure()
    _draw_parts_done(axes, [slowdowns(report) for report in reports], reports)
    axes.set_title("Slow-downs: completion time over the time alone")
    axes.set_xlabel("slow-down")
    return figure


def _draw_utilisation(reports: Sequence[dict[str, Any]]) -> Any:
    figure, panels = _new_figure(len(reports), 1.5 + 1.7 * len(reports))
    spans = [_span(report) for report in reports]
    begin, end = min(begin for begin, _ in spans), max(end for _, end in spans)
    unit = unit_of(end - begin)
    at = [
        (begin + (end - begin) * (part + 0.5) / _NUM_COLUMNS) / _SECONDS[unit]
        for part in range(_NUM_COLUMNS)
    ]
    for axes, report in zip(panels, reports, strict=True):
        used = spread_over([lease[2:4] for lease in report["leases"]], begin, end, _NUM_COLUMNS)
        axes.fill_between(at, [part / report["devices"] for part in used], step="mid", alpha=0.8)
        axes.set_ylim(bottom=0)
        axes.set_xlim(begin / _SECONDS[unit], max(end, begin + 1) / _SECONDS[unit])
        axes.set_title(report["policy"], loc="left", fontsize="medium")
        axes.set_ylabel("leases\na device")
    panels[-1].set_xlabel(f"time, {unit}")
    figure.suptitle("Devices in use")
    return figure


def _draw_jobs(report: dict[str, Any]) -> Any:
    jobs = report["jobs"]
    order = sorted(range(len(jobs)), key=lambda job: (jobs[job]["arrival_seconds"], job))
    begin, end = _span(report)
    unit = unit_of(end - begin)
    leases: list[list[tuple[float, float]]] = [[] for _ in jobs]
    for _, job, start, stop in report["leases"]:
        leases[job].append((start, stop))
    figure, (axes,) = _new_figure(height=min(3 + 0.2 * len(jobs), 11))
    if jobs and end > begin:
        image = [_colours(jobs[job], leases[job], begin, end) for job in order]
        borders = (begin / _SECONDS[unit], end / _SECONDS[unit], len(jobs) - 0.5, -0.5)
        axes.imshow(image, aspect="auto", interpolation="nearest", extent=borders)
    if len(jobs) <= _MOST_NAMES:
        names = [printable(jobs[job]["name"]) for job in order]
        axes.set_yticks(range(len(jobs)), names, fontsize="x-small")
    else:
        axes.set_ylabel("job, as they arrive")
    axes.set_title(f"Jobs under {report['policy']}: blue runs, grey waits")
    axes.set_xlabel(f"time, {unit}")
    return figure


def _colours(
    job: dict[str, Any], leases: Sequence[tuple[float, float]], begin: float, end: float
) -> list[tuple[float, float, float]]:
    """A job's row: white while it is not there, else from grey to blue as it runs."""
    here = spread_over([(job["arrival_seconds"], job["finish_seconds"])], begin, end, _NUM_COLUMNS)
    runs = spread_over(leases, begin, end, _NUM_COLUMNS)
    row = []
    for present, running in zip(here, runs, strict=True):
        if present <= 0 and running <= 0:
            row.append((1.0, 1.0, 1.0))
            continue
        share = min(running / max(present, running), 1.0)
        red, green, blue = (
            waits + (runs_ - waits) * share for waits, runs_ in zip(_WAITS, _RUNS, strict=True)
        )
        row.append((red, green, blue))
    return row
