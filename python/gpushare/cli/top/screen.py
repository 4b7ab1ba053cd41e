"""The whole screen as lines of text: what a terminal shows, and what ``--once`` prints.

Nothing here knows the terminal. The same looks and choices give the same lines, so a test compares
them as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpushare.cli._targets.jobs import label
from gpushare.cli.top.columns import Shown, head_line, job_line, lay_out
from gpushare.cli.top.devices import Place, device_lines
from gpushare.cli.top.line import Line, Span, cut, fill, span, spread, wrap
from gpushare.cli.top.rows import Choice, Row, rows_of

if TYPE_CHECKING:
    from gpushare.cli.top.glyphs import Glyphs
    from gpushare.cli.top.history import JobId
    from gpushare.cli.top.look import Look

LOOK_OF_STATE = {
    "running": "running",
    "closing": "running",
    "waiting": "waiting",
    "paused": "stopped",
    "suspended": "stopped",
    "lost": "warning",
    "unmanaged": "warning",
}
_KEYS = "q quit  h help  ,. sort  / turn  f filter  u mine"
_CHANGE_KEYS = "  p pause  r resume  s priority"
_LEAST_ROWS = 3


class Size(NamedTuple):
    """Of the terminal, in places."""

    width: int
    height: int
    """0: this is no terminal, but one screen with as many lines as it takes."""


class Drawn(NamedTuple):
    """The lines, and where the rows of the table are in them."""

    lines: list[Line]
    first_row: int
    """The line of the first row that is shown."""
    rows: list[Row]
    """Those that are shown."""
    all_rows: list[Row]
    """Those that there are."""


def draw(look: Look, choice: Choice, size: Size, glyphs: Glyphs, message: str = "") -> Drawn:
    """Returns the screen.

    Args:
        look: What was seen.
        choice: What the user wants of it.
        size: Of the terminal.
        glyphs: What it can show.
        message: What the last key has done; "" for nothing.
    """
    rows = rows_of(look, choice)
    top = [_title(look, choice, rows, size.width), *_devices(look, size, glyphs)]
    has_devices, is_live = len(look.devices()) > 1, size.height > 0
    layout = lay_out(size.width, has_devices=has_devices, has_past=is_live)
    heads = head_line(layout, choice.sort, is_reversed=choice.is_reversed)
    top.append(fill(heads, size.width, "head"))
    selected = _selected(rows, choice.selected)
    bottom = _sentences(look, rows, selected, size)
    if is_live:
        bottom.append(_last_line(choice, size.width, message))
    room = max(_LEAST_ROWS, size.height - len(top) - len(bottom)) if is_live else len(rows)
    first = max(0, min((selected or 0) - room // 2, len(rows) - room))
    shown = rows[first : first + room]
    middle = []
    for place, row in enumerate(shown, first):
        is_selected = is_live and place == selected
        word = "selected" if is_selected else LOOK_OF_STATE.get(str(row.fields["state"]), "")
        line = job_line(layout, Shown(row, look.history, glyphs), word)
        middle.append(fill(line, size.width, word) if is_selected else line)
    if not rows:
        middle.append(cut((Span(_why_empty(look, choice), "dim"),), size.width))
    missing = max(0, room - len(middle)) if is_live else 0
    lines = [*top, *middle, *[()] * missing, *bottom][: size.height or None]
    return Drawn([cut(line, size.width) for line in lines], len(top), shown, rows)


def _selected(rows: list[Row], key: JobId | None) -> int | None:
    """The place of the row that is selected; its job may have ended."""
    return next((place for place, row in enumerate(rows) if row.key == key), None)


def _title(look: Look, choice: Choice, rows: list[Row], width: int) -> Line:
    jobs = [job for device in look.devices() for job in device["jobs"]]
    states = [str(job["state"]) for job in jobs]
    known = [state for state in LOOK_OF_STATE if state in states]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys([*known, *states])]
    text = f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}" + (": " if counts else "")
    left: Line = (span("gpushare top", "name"), span(f"   {text}{', '.join(counts)}"))
    words = [f'filter "{choice.text}"'] if choice.text else []
    words += ["mine"] if choice.is_mine else []
    words += [f"{len(rows)} shown"] if choice.text or choice.is_mine else []
    words += ["read-only"] if choice.is_readonly else []
    return spread(left, (span("  ".join(words), "sorted"),), width)


def _devices(look: Look, size: Size, glyphs: Glyphs) -> list[Line]:
    """All that there is of each device, or a line of each where that would fill the screen."""
    place = Place(size.width, glyphs, has_past=size.height > 0, is_compact=False)
    lines = device_lines(look, place)
    if size.height and len(lines) > size.height // 2:
        lines = device_lines(look, place._replace(is_compact=True))
    return lines


def _sentences(look: Look, rows: list[Row], selected: int | None, size: Size) -> list[Line]:
    """What jobs wait for, that of the selected one first, and warnings."""
    order = list(rows)
    if selected is not None:
        order.insert(0, order.pop(selected))
    has_devices = len(look.devices()) > 1
    waits = [
        (f"{_who(row, has_devices=has_devices)}: {row.fields['explain']}", "")
        for row in order
        if row.is_job and row.fields["explain"]
    ]
    warnings = [(f"warning: {each['text']}", "warning") for each in look.report["warnings"]]
    if size.height and len(warnings) > 1:
        text = f"{len(warnings)} warnings, see gpushare status; the first: "
        warnings = [(text + warnings[0][0].removeprefix("warning: "), "warning")]
    if look.report.get("jobs_left_out"):
        text = f"{look.report['jobs_left_out']} jobs more do not fit into the answer"
        warnings.append((text, "warning"))
    is_first = bool(waits) and selected is not None and bool(rows[selected].fields.get("explain"))
    most = max(2, size.height // 6) if size.height else 0
    lines: list[Line] = []
    for text, word in [*waits[:is_first], *warnings, *waits[is_first:]]:
        more = wrap(text, size.width, word)
        if most and lines and len(lines) + len(more) > most:  # whole sentences alone
            break
        lines += more
    # Always as many: a sentence that grows by a word must not move what stands above it.
    return [*lines[:most], *[()] * (most - len(lines))] if most else lines


def _who(row: Row, *, has_devices: bool) -> str:
    """The job; each device's coordinator has numbers of its own."""
    return f"device {row.number}, {label(row.fields)}" if has_devices else label(row.fields)


def _last_line(choice: Choice, width: int, message: str) -> Line:
    if message:
        return cut((span(message, "name"),), width)
    return cut((span(_KEYS + ("" if choice.is_readonly else _CHANGE_KEYS), "dim"),), width)


def _why_empty(look: Look, choice: Choice) -> str:
    if choice.text or choice.is_mine:
        return "no job is like that: f changes the filter, u shows all users' jobs"
    if look.devices():
        return "no jobs: start one with gpushare run -- python train.py"
    return "no jobs are known, since no coordinator answers"
