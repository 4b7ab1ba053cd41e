"""The program on the terminal: looks once a second, takes keys. Needs textual."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from gpushare._settings.settings import PRIORITIES
from gpushare.cli.top import changes
from gpushare.cli.top.board import Board
from gpushare.cli.top.columns import sorts
from gpushare.cli.top.dialogs import Choose, Help, Question
from gpushare.cli.top.screen import Drawn, Size, draw

if TYPE_CHECKING:
    from gpushare.cli.top.glyphs import Glyphs
    from gpushare.cli.top.look import Look, Watch
    from gpushare.cli.top.rows import Choice, Row

LOOK_SECONDS = 1.0
_MESSAGE_SECONDS = 8.0
_PAGE = 10


class TopApp(App[None]):
    """``gpushare top``."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Board { width: 100%; height: 100%; }
    Input { dock: bottom; display: none; border: none; height: 1; padding: 0; }
    ModalScreen { align: center middle; }
    .dialog { width: auto; max-width: 100%; height: auto; max-height: 100%; }
    .dialog { padding: 0 1; border: round; }
    .dialog Static { width: auto; }
    .dialog OptionList { width: 20; height: auto; border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", priority=True),  # from a dialog, too
        ("h,question_mark", "help", "help"),
        ("comma,less_than_sign", "sort(-1)", "sort by the column to the left"),
        ("full_stop,greater_than_sign", "sort(1)", "sort by the column to the right"),
        ("slash", "reverse", "turn the order around"),
        ("f,backslash,f4", "filter", "filter"),
        ("u", "mine", "my jobs"),
        ("up", "move(-1)", "select"),
        ("down", "move(1)", "select"),
        ("pageup", f"move(-{_PAGE})", "select"),
        ("pagedown", f"move({_PAGE})", "select"),
        ("home", "move(-1000000)", "select"),
        ("end", "move(1000000)", "select"),
        ("escape", "clear", "select nothing"),
        ("p", "pause", "pause"),
        ("r", "resume", "resume"),
        ("s", "priority", "set the priority"),
        ("ctrl+z", "suspend_process", "suspend"),
    ]

    def __init__(self, watch: Watch, choice: Choice, glyphs: Glyphs) -> None:
        """Asks nobody yet.

        Args:
            watch: Looks at the coordinators.
            choice: What the user wants to see at first.
            glyphs: What the terminal can show.
        """
        super().__init__()
        self.theme = "ansi-dark"  # the terminal's own colours
        self._watch = watch
        self._choice = choice
        self._glyphs = glyphs
        self._look: Look | None = None
        self._drawn: Drawn | None = None
        self._message = ("", 0.0)
        self._look_now = asyncio.Event()
        self._board = Board()

    def compose(self) -> ComposeResult:
        """The screen, and the line in which a filter is typed."""
        yield self._board
        yield Input(placeholder="text in name, group, user or state; Enter keeps it, Esc shows all")

    def on_mount(self) -> None:
        """Begins to look."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.exit)
        self._board.focus()
        self.run_worker(self._look_on())

    async def _look_on(self) -> None:
        while True:
            begun = time.monotonic()
            self._look_now.clear()
            self._look = await asyncio.to_thread(self._watch.look)
            self._look.remember()
            self._redraw()
            spent = time.monotonic() - begun
            wait = LOOK_SECONDS - spent if spent < LOOK_SECONDS else LOOK_SECONDS
            try:
                await asyncio.wait_for(self._look_now.wait(), wait)
            except asyncio.TimeoutError:
                continue

    def _redraw(self) -> None:
        if self._look is None:
            return
        width, height = self._board.size
        text, until = self._message
        message = text if time.monotonic() < until else ""
        self._drawn = draw(self._look, self._choice, Size(width, height), self._glyphs, message)
        self._board.show(self._drawn.lines)

    def _say(self, text: str) -> None:
        self._message = (text, time.monotonic() + _MESSAGE_SECONDS)
        self._redraw()

    def on_board_resized(self) -> None:
        """Draws for the new size."""
        self._redraw()

    def on_board_moved(self, event: Board.Moved) -> None:
        """Selects by the mouse."""
        if event.line is None:
            self.action_move(event.by)
        elif self._drawn is not None:
            place = event.line - self._drawn.first_row
            if 0 <= place < len(self._drawn.rows):
                self._choice.selected = self._drawn.rows[place].key
                self._redraw()

    def action_move(self, by: int) -> None:
        """Selects a row further down or up; without a selection as if from above the first."""
        rows = self._drawn.all_rows if self._drawn is not None else []
        if not rows:
            return
        keys = [row.key for row in rows]
        place = keys.index(self._choice.selected) if self._choice.selected in keys else -1
        self._choice.selected = keys[max(0, min(place + by, len(keys) - 1))]
        self._redraw()

    def action_clear(self) -> None:
        """Selects nothing, and shows all jobs."""
        self._choice.selected, self._choice.text, self._choice.is_mine = None, "", False
        self.query_one(Input).value = ""
        self._close_filter()
        self._message = ("", 0.0)
        self._redraw()

    def action_sort(self, by: int) -> None:
        """Sorts by the next column, or the one before."""
        shown = sorts(self._board.size.width)
        now = shown.index(self._choice.sort) if self._choice.sort in shown else 0
        self._choice.sort = shown[(now + by) % len(shown)]
        self._redraw()

    def action_reverse(self) -> None:
        """Turns the order around."""
        self._choice.is_reversed = not self._choice.is_reversed
        self._redraw()

    def action_mine(self) -> None:
        """Shows one's own jobs alone, or all again."""
        self._choice.is_mine = not self._choice.is_mine
        self._redraw()

    def action_filter(self) -> None:
        """Opens the line in which a filter is typed."""
        line = self.query_one(Input)
        line.display = True
        line.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filters while it is typed."""
        self._choice.text = event.value
        self._redraw()

    def on_input_submitted(self) -> None:
        """Keeps the filter."""
        self._close_filter()

    def on_input_blurred(self) -> None:
        """Keeps the filter."""
        self._close_filter()

    def _close_filter(self) -> None:
        self.query_one(Input).display = False
        self._board.focus()

    def action_help(self) -> None:
        """Shows the help."""
        self.push_screen(Help())

    def _selected(self) -> Row | None:
        rows = self._drawn.all_rows if self._drawn is not None else []
        return next((row for row in rows if row.key == self._choice.selected), None)

    def _changeable(self) -> Row | None:
        """The selected row, if it may be changed; else it is said why not."""
        row = self._selected()
        text = changes.why_not(row, self._choice)
        if text:
            self._say(text)
        return None if text else row

    def action_pause(self) -> None:
        """Asks whether to pause the selected job."""
        if row := self._changeable():
            text = f"Pause {changes.who(row)}? It gets no lease until it is resumed."
            self._ask(text, changes.pause(row.key))

    def action_resume(self) -> None:
        """Asks whether to resume the selected job."""
        if row := self._changeable():
            self._ask(f"Resume {changes.who(row)}?", changes.resume(row.key))

    def action_priority(self) -> None:
        """Asks which priority the selected job is to have."""
        if not (row := self._changeable()):
            return
        now = row.fields["priority"]

        def take(word: str | None) -> None:
            if word is None or word == now:
                self._say("nothing is changed")
            else:
                self._carry_out(changes.set_priority(row.key, word))

        self.push_screen(Choose(f"Priority of {changes.who(row)}?", PRIORITIES, now), take)

    def _ask(self, text: str, change: changes.Change) -> None:
        def take(is_yes: bool | None) -> None:
            if is_yes:
                self._carry_out(change)
            else:
                self._say("nothing is changed")

        self.push_screen(Question(text), take)

    def _carry_out(self, change: changes.Change) -> None:
        self.run_worker(self._change(change))

    async def _change(self, change: changes.Change) -> None:
        if self._look is None:
            return
        self._say(await asyncio.to_thread(changes.carry_out, change, self._look))
        self._look_now.set()
