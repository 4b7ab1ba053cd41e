"""What the demo says: what it is about to show, its one table, and what that means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from gpushare.cli._screen.colours import ALARM, NOTE, WARNING
from gpushare.cli._screen.columns import Column, fit_lines
from gpushare.cli._screen.line import Line, Span, wrap
from gpushare.cli.units import format_bytes
from gpushare.demo.scenes import FIXED_SHARE, SHARED_TITLE

if TYPE_CHECKING:
    from gpushare.demo.report import DemoReport
    from gpushare.demo.scene import SceneResult

_MIB = 1 << 20
_PLAIN_WIDTH = 132
"""Where output goes to a file: wide enough for one line a scene."""

_INTRODUCTION = (
    "gpushare lets PyTorch jobs share one device that is too small for all of them at once. They "
    "take turns, one training step at a time. The memory of a job that waits moves to the host's "
    "memory, and comes back to the same addresses before the job's next turn.",
    "To show it, three small models train here in six ways: one after the other, with a fixed "
    "share of the device each, side by side, and with gpushare. No GPU is needed: the device is "
    "this machine's CPU, with a budget of bytes. It takes {duration}.",
)
_RESULT_STYLES = {
    "identical": "green",
    "out of memory": "red",
    "stopped at 2 x": "red",
    "not finished": "red",
    "different bits": WARNING,
}


def _result_style(text: str) -> str:
    return _RESULT_STYLES.get(text, "")


_COLUMNS = (
    (Column("scene"), ""),
    (Column("time", is_number=True), "s"),
    (Column("over", is_number=True), "serial"),
    (Column("memory", is_number=True), "MiB"),
    (Column("result", style=_result_style), ""),
    (Column("switches", drop=2, is_number=True), ""),
    (Column("hand-over", drop=4, is_number=True), "ms"),
    (Column("dropped", drop=5, is_number=True), "MiB"),
    (Column("spilled", drop=1, is_number=True), "MiB"),
    (Column("restored", drop=3, is_number=True), "MiB"),
    (Column("in slices", drop=6, is_number=True), "x alone"),
)
"""Each with its unit, which stands below the head."""


def make_console() -> Console:
    """Returns a console for progress on standard output, wide where that is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=_PLAIN_WIDTH)


def introduction(width: int | None, *, is_quick: bool) -> list[Line]:
    """Returns what a newcomer should know before the first scene."""
    duration = "about a minute" if is_quick else "a few minutes"
    lines: list[Line] = []
    for text in _INTRODUCTION:
        lines += [*wrap(text.format(duration=duration), width, indent=""), []]
    return lines


def report_lines(report: DemoReport, width: int | None) -> list[Line]:
    """Lays out the outcome, the table, and what follows from it."""
    lines: list[Line] = []
    for text in outcome(report):
        lines += wrap(text, width, "bold")
    units = tuple(unit for _, unit in _COLUMNS)
    rows = [units, *(_cells(report, scene) for scene in report.scenes)]
    lines += [[], *fit_lines([column for column, _ in _COLUMNS], rows, width), []]
    for text in explain(report):
        lines += wrap(text, width)
    for proof in report.proofs:
        mark = Span("holds ", "green") if proof.holds else Span("FAILS ", ALARM)
        first, *rest = wrap(f"{mark.text}{proof.claim} ({proof.evidence})", width)
        lines += [[mark, Span(first[0].text.removeprefix(mark.text))], *rest]
    next_step = "next: gpushare run -- python train.py has your own script share the device"
    return lines + wrap(f"{next_step}; gpushare status shows who runs and who waits", width, NOTE)


def outcome(report: DemoReport) -> list[str]:
    """Returns in a few sentences what the table shows."""
    device = format_bytes(report.budget_bytes)
    lines = [f"The jobs need {format_bytes(report.sum_of_peaks())}, and the device has {device}."]
    for scene in report.scenes:
        verdict = scene.verdict(report.reference)
        if scene.title == FIXED_SHARE and verdict == "out of memory":
            lines.append("With a fixed share each, a job runs out of memory.")
    shared = next(scene for scene in report.scenes if scene.title == SHARED_TITLE)
    verdict = shared.verdict(report.reference)
    if verdict != "identical":
        return [*lines, f"With gpushare: {verdict}."]
    ratio = report.ratio(shared)
    time = f", in {ratio:.2f} times the time of one after the other" if ratio else ""
    return [
        *lines,
        "With gpushare all of them finish, with the same losses and parameters as alone"
        f"{time if report.are_timings_valid else ''}.",
    ]


def explain(report: DemoReport) -> list[str]:
    """Returns the lines below the table: budget, validity of the timings, and where we lose."""
    lines = [
        f"budget {format_bytes(report.budget_bytes)}, "
        f"{report.budget_bytes / report.sum_of_peaks():.0%} of what the three jobs need together. "
        "Scenes under gpushare use its allocator, the others torch's; in slices compares "
        "iterations with the same job alone on gpushare's allocator."
    ]
    if not report.are_timings_valid:
        lines.append(
            f"TIMINGS VOID: the machine's speed changed by {report.drift:.0%} between the serial "
            "probes before and after. Is something else running? The proofs are not affected."
        )
    else:
        lines.append(f"serial probes before and after differ by {report.drift:.1%}")
    faster = [scene for scene in report.scenes if _beats_gpushare(report, scene)]
    if faster:
        names = ", ".join(f"{scene.title!r}" for scene in faster)
        lines.append(
            f"faster than gpushare on this CPU: {names}. See memory and result: gpushare is about "
            "memory and equal bits, not about a CPU's speed."
        )
    lines.extend(note for scene in report.scenes for note in scene.notes)
    lines.extend(
        f"{scene.title}: {job.name}: {job.out_of_memory}"
        for scene in report.scenes
        for job in scene.jobs
        if job.out_of_memory
    )
    lines.append(f"the demo took {report.seconds:.0f} s")
    return lines


def _beats_gpushare(report: DemoReport, scene: SceneResult) -> bool:
    ours = [each.seconds for each in report.scenes if each.is_managed and each.seconds]
    return bool(ours and scene.seconds and scene.seconds < min(ours))


def _cells(report: DemoReport, scene: SceneResult) -> tuple[str, ...]:
    ratio = report.ratio(scene)
    void = "" if report.are_timings_valid else "?"
    slice_ratio = report.slice_ratio(scene)
    cells = (
        scene.title,
        f"{scene.seconds:.1f}{void}" if scene.seconds is not None else "-",
        f"{ratio:.2f}{void}" if ratio is not None else ("> 2.00" if scene.is_late else "-"),
        f"{scene.peak_bytes / _MIB:,.0f}",
        scene.verdict(report.reference),
    )
    if not scene.is_managed or scene.timeline is None:
        return (*cells, *[""] * (len(_COLUMNS) - len(cells)))
    handover = scene.timeline.median_handover_ns
    return (
        *cells,
        str(scene.timeline.num_switches),
        "-" if handover is None else f"{handover / 1e6:.1f}",
        *(
            f"{scene.total(f'{counter}_total_bytes') / _MIB:,.0f}"
            for counter in ("dropped", "spilled", "restored")
        ),
        "-" if slice_ratio is None else f"{slice_ratio:.2f}{void}",
    )
