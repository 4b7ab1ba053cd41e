"""What stands over the screen for a moment: the help, and questions before a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.events import Key

Answer = TypeVar("Answer")

HELP = """\
q            quit
h ?          this help
Up Down      select a job, and so do the wheel and a click
Home End PageUp PageDown    the same, further
Esc          select nothing, and show all jobs
, .          sort by the next column to the left, to the right
/            turn the order around
f            show only jobs with a text in name, group, user or state
u            show only my own jobs, or all again
p r          pause the selected job, resume it
s            set its priority

GOT          part of its lane's recent time that the job got
IT/S         iterations a second, now; ALONE: without the waiting
RESIDENT     its memory on the device; SPILLED: on the host
leased       part of the recent time in which a job had the lease
memory       part of the device's memory that jobs may use
The bar: running jobs, then the others, what jobs share, the rest."""


class Dialog(ModalScreen[Answer]):
    """What closes once: textual ends with an error where a second key finds it still there."""

    _is_over = False

    def close(self, answer: Answer) -> None:
        """Closes it with an answer; later answers are none."""
        if not self._is_over:
            self._is_over = True
            self.dismiss(answer)


class Help(Dialog[None]):
    """What the keys do and what the figures are; any key closes it."""

    def compose(self) -> ComposeResult:
        """The text."""
        yield Static(HELP, markup=False, classes="dialog")

    def on_key(self, event: Key) -> None:
        """Closes it; the key does nothing else."""
        event.stop()
        self.close(None)

    def on_click(self) -> None:
        """Closes it."""
        self.close(None)


class Question(Dialog[bool]):
    """Yes or no; Enter and Esc are no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "answer(True)", "yes"),
        ("n,escape,q,enter", "answer(False)", "no"),
    ]

    def __init__(self, text: str) -> None:
        """Shows the text.

        Args:
            text: A question, printable.
        """
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """The question."""
        yield Static(f"{self._text}\n\ny yes    n no", markup=False, classes="dialog")

    def action_answer(self, answer: bool) -> None:
        """Closes it with an answer."""
        self.close(answer)


class Choose(Dialog[str | None]):
    """One of some words; Enter takes it, Esc leaves all as it is."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,n", "leave", "leave it")]

    def __init__(self, text: str, words: tuple[str, ...], now: str) -> None:
        """Shows the words.

        Args:
            text: A question, printable.
            words: To choose from.
            now: The one that holds now; it is marked first.
        """
        super().__init__()
        self._text = text
        self._words = words
        self._now = now

    def compose(self) -> ComposeResult:
        """The question and the words."""
        with Vertical(classes="dialog"):
            yield Static(f"{self._text}\n", markup=False)
            yield OptionList(*(Option(word) for word in self._words))
            yield Static("\nEnter takes it    Esc leaves it as it is", markup=False)

    def on_mount(self) -> None:
        """Marks what holds now."""
        words = self.query_one(OptionList)
        words.highlighted = self._words.index(self._now) if self._now in self._words else 0
        words.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Closes it with the word."""
        self.close(self._words[event.option_index])

    def action_leave(self) -> None:
        """Closes it without a word."""
        self.close(None)
