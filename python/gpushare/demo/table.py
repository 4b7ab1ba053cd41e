"""The demo's one table, and the lines that say what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpushare.cli.units import format_bytes

if TYPE_CHECKING:
    from gpushare.demo.report import DemoReport
    from gpushare.demo.scene import SceneResult

_MIB = 1 << 20
_PLAIN_WIDTH = 132
"""Where output goes to a file: wide enough for one line a row."""

_COLUMNS = (
    ("time", "s"),
    ("over", "serial"),
    ("memory", "MiB"),
    ("result", ""),
    ("switches", ""),
    ("hand-over", "ms"),
    ("dropped", "MiB"),
    ("spilled", "MiB"),
    ("restored", "MiB"),
    ("in slices", "x alone"),
)


def make_console() -> Console:
    """Returns a console on standard output, wide where that is no terminal."""
    console = Console()
    return console if console.is_terminal else Console(width=_PLAIN_WIDTH)


def print_report(report: DemoReport, console: Console) -> None:
    """Prints the table and what follows from it."""
    console.print(make_table(report))
    for line in explain(report):
        console.print(line, highlight=False, soft_wrap=True)
    for proof in report.proofs:
        mark = Text("holds ", "green") if proof.holds else Text("FAILS ", "bold red")
        console.print(mark + Text(f"{proof.claim} ({proof.evidence})", ""), soft_wrap=True)


def make_table(report: DemoReport) -> Table:
    """Builds the table of all scenes."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("scene\n", min_width=14)
    for name, unit in _COLUMNS:
        justify = "left" if name == "result" else "right"
        table.add_column(f"{name}\n{unit}", justify=justify)  # type: ignore[arg-type]
    for scene in report.scenes:
        table.add_row(scene.title, *_cells(report, scene))
    return table


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


def _cells(report: DemoReport, scene: SceneResult) -> list[str]:
    ratio = report.ratio(scene)
    void = "" if report.are_timings_valid else "?"
    slice_ratio = report.slice_ratio(scene)
    cells = [
        f"{scene.seconds:.1f}{void}" if scene.seconds is not None else "-",
        f"{ratio:.2f}{void}" if ratio is not None else ("> 2.00" if scene.is_late else "-"),
        f"{scene.peak_bytes / _MIB:,.0f}",
        scene.verdict(report.reference),
    ]
    if not scene.is_managed or scene.timeline is None:
        return cells
    handover = scene.timeline.median_handover_ns
    return [
        *cells,
        str(scene.timeline.num_switches),
        "-" if handover is None else f"{handover / 1e6:.1f}",
        *(
            f"{scene.total(f'{counter}_total_bytes') / _MIB:,.0f}"
            for counter in ("dropped", "spilled", "restored")
        ),
        "-" if slice_ratio is None else f"{slice_ratio:.2f}{void}",
    ]
