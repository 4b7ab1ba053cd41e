"""Draws lines of text on the terminal, and of a new screen only the lines that differ."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.binding import BindingType
    from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize

    from gpushare.cli.top.line import Line

LOOKS = {
    "name": Style(bold=True),
    "head": Style(bold=True, reverse=True),
    "sorted": Style(bold=True, reverse=True, color="cyan"),
    "selected": Style(reverse=True),
    "running": Style(color="green"),
    "waiting": Style(color="yellow"),
    "stopped": Style(color="magenta"),
    "warning": Style(color="red"),
    "others": Style(color="blue"),
    "shared": Style(color="cyan"),
    "curve": Style(color="cyan"),
    "dim": Style(dim=True),
}


class Board(Widget, can_focus=True):
    """The whole screen. It knows lines of text, and nothing of devices and jobs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("tab", "app.move(1)", "select"),  # here, before it moves the focus
        ("shift+tab", "app.move(-1)", "select"),
    ]

    class Moved(Message):
        """The mouse's wheel was turned by so many lines, or a line was clicked."""

        def __init__(self, by: int = 0, line: int | None = None) -> None:
            """Says what was done.

            Args:
                by: Lines down, or up below 0.
                line: Which was clicked, from the top.
            """
            super().__init__()
            self.by = by
            self.line = line

    class Resized(Message):
        """The terminal has another size."""

    def __init__(self) -> None:
        """Has no lines yet."""
        super().__init__()
        self._lines: list[Line] = []
        self._strips: list[Strip] = []

    def show(self, lines: list[Line]) -> None:
        """Replaces all lines; what is the same is not drawn again."""
        pairs = zip_longest(self._lines, lines)
        changed = [y for y, (old, new) in enumerate(pairs) if old != new]
        if not changed:
            return
        strips = self._strips[: len(lines)] + [Strip.blank(0)] * (len(lines) - len(self._strips))
        for y in changed:
            if y < len(lines):
                strips[y] = _strip(lines[y])
        self._lines, self._strips = list(lines), strips
        self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        """Returns one line, as wide as the widget."""
        strip = self._strips[y] if y < len(self._strips) else Strip.blank(0)
        return strip.adjust_cell_length(self.size.width)

    def on_click(self, event: Click) -> None:
        """Says which line was clicked."""
        self.post_message(self.Moved(line=event.y))

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Says that the wheel was turned."""
        event.stop()
        self.post_message(self.Moved(by=1))

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Says that the wheel was turned."""
        event.stop()
        self.post_message(self.Moved(by=-1))

    def on_resize(self, _: Resize) -> None:
        """Says that lines of another width are needed."""
        self.post_message(self.Resized())


def _strip(line: Line) -> Strip:
    """The line with its colours. Segments are text alone: no markup in a name is read."""
    return Strip([Segment(each.text, LOOKS.get(each.look)) for each in line])
