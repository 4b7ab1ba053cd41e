"""``gpushare status --watch`` on a terminal: its own screen, with a clock and keys."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from enum import Enum, auto

from rich.console import Console
from rich.live import Live
from rich.text import Text

from gpushare.cli._screen.colours import NOTE, WARNING
from gpushare.cli._screen.line import Line, Span, flow, wrap
from gpushare.cli._screen.terminal import screen_width, styled
from gpushare.errors import CoordinatorUnreachable

_QUIT_KEYS = b"qQ\x1b"
_OTHER_KEYS = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]")
"""Arrow keys and their like begin as the key Esc does."""
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Wish(Enum):
    """What the user wants."""

    LOOK_AGAIN = auto()
    SUSPEND = auto()
    QUIT = auto()


def watch(look: Callable[[int], list[Line]], seconds: float) -> None:
    """Shows what ``look`` returns, again and again, until the user ends it.

    While no coordinator answers, the screen says so. Afterwards the terminal is as it was before,
    however this ends.

    Args:
        look: Asks the coordinators; its argument is the width in places.
        seconds: Between two looks.
    """
    with _notes() as notes:
        while True:
            with (
                _keys() as has_keys,
                Live(console=Console(highlight=False), screen=True, auto_refresh=False) as live,
            ):
                wish = _Wish.LOOK_AGAIN
                while wish is _Wish.LOOK_AGAIN:
                    live.update(_page(look, seconds, has_keys=has_keys), refresh=True)
                    wish = _wait(seconds, notes, has_keys=has_keys)
            if wish is _Wish.QUIT:
                return
            os.kill(os.getpid(), signal.SIGSTOP)  # the terminal is the shell's until SIGCONT


def _page(look: Callable[[int], list[Line]], seconds: float, *, has_keys: bool) -> Text:
    """All of the screen."""
    size = shutil.get_terminal_size()
    width = screen_width() or size.columns
    try:
        lines = look(width)
    except CoordinatorUnreachable as error:
        lines = wrap("No coordinator runs now. This goes on when one comes.", width, WARNING)
        lines += wrap(str(error), width, NOTE)
    clock = [
        Span(time.strftime("%Y-%m-%d %H:%M:%S"), "bold"),
        Span(f"every {seconds:g} s", NOTE),
        Span("q quits" if has_keys else "Ctrl-C quits", NOTE),
    ]
    lines = [*flow(clock, width), *lines]
    if len(lines) > size.lines:
        rest = len(lines) - size.lines + 1
        more = wrap(f"and {rest} lines more: they need a taller window", width, WARNING)
        lines = [*lines[: size.lines - 1], more[0]]
    return Text("\n", no_wrap=True, overflow="crop").join(map(styled, lines))


def _wait(seconds: float, notes: int, *, has_keys: bool) -> _Wish:
    """Waits for a key, a note of a signal, or the next look."""
    end = time.monotonic() + seconds
    files = [notes, sys.stdin.fileno()] if has_keys else [notes]
    while (left := end - time.monotonic()) > 0:
        ready, _, _ = select.select(files, [], [], left)
        if notes in ready:
            numbers = os.read(notes, 4096)
            for number in numbers:
                _end_by(number)
            return _Wish.SUSPEND if signal.SIGTSTP in numbers else _Wish.LOOK_AGAIN
        if ready:
            keys = os.read(sys.stdin.fileno(), 64)
            if not keys or set(_OTHER_KEYS.sub(b"", keys)) & set(_QUIT_KEYS):
                return _Wish.QUIT  # nothing to read: the terminal is gone
    return _Wish.LOOK_AGAIN


@contextlib.contextmanager
def _keys() -> Iterator[bool]:
    """Has keys come one by one and unseen. False: input is no terminal, and has no keys."""
    if not sys.stdin.isatty():
        yield False
        return
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    try:
        tty.setcbreak(file)
        yield True
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _notes() -> Iterator[int]:
    """Returns a descriptor with a byte for each signal that has come, which is its number.

    Python writes it at once. A handler runs later: it would come too late for a wait that begins
    just then. A signal that ends the process is raised as well, so that it ends a look at once.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)

    def handle(number: int, _frame: object) -> None:
        _end_by(number)

    numbers = (signal.SIGWINCH, signal.SIGTSTP, *_ENDING_SIGNALS)
    before = {number: signal.signal(number, handle) for number in numbers}
    told_before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    try:
        yield read
    finally:
        signal.set_wakeup_fd(told_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


def _end_by(number: int) -> None:
    """Ends as this signal says, if it is one that ends the process."""
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    if number in _ENDING_SIGNALS:
        sys.exit(128 + number)
