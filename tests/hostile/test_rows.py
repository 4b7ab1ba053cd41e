"""Ranks that lie about their steps: whoever waits for their devices has his turns all the same."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.hostile.inputs import encode
from tests.hostile.peer import Message, Peer
from tests.hostile.shared_box import PATIENCE_SECONDS, SharedBox, StrangerProcess, shared_box

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")

# Of the lease page (csrc/wire/lease_page.h).
WORD, STOP_AT, ITERATIONS, TRAINING, STEPS = 64, 176, 192, 368, 424
IDLE, WANTED, OPEN, CLOSING, STATES, ASKED = 0, 1, 2, 4, 7, 8
OPTIONS = ("--devices", "cpu:0=64MiB,cpu:1=64MiB", "--max-wait-ms", "300ms")
GANG = {"gang": "liars", "ranks": 2}
TURNS = 60
"""Iterations of the job that waits."""
MOST_PER_TURN = 20
"""How many iterations a rank may have for one of the job's. Without a slice of its own the job has
one for 90, and beside most lies none."""
PAUSE_SECONDS = 0.001

Say = Callable[["Runner"], None]


class Runner:
    """A job that iterates, and gives its lease back at a boundary when it is asked."""

    def __init__(self, box: SharedBox, device: str, hello: Message, register: Message) -> None:
        self._peer = Peer(box.path)
        welcome = self._peer.hello(device=device, **hello)
        assert welcome is not None
        assert welcome["type"] == "welcome", welcome
        wish = self._peer.message("register", paused_by_uid=..., **register)
        registered = self._peer.ask(encode(wish))
        assert registered is not None
        assert registered["type"] == "registered", registered
        self.iterations = 0

    def close(self) -> None:
        """Ends its connection."""
        self._peer.close()

    def read(self, at: int) -> int:
        """A word of the page."""
        assert self._peer.page is not None
        (value,) = struct.unpack_from("<Q", self._peer.page, at)
        return int(value)

    def write(self, at: int, value: int) -> None:
        """The same, written."""
        assert self._peer.page is not None
        struct.pack_into("<Q", self._peer.page, at, value)

    def go_on(self, say: Say) -> None:
        """One iteration, or one look while there is no lease."""
        word = self.read(WORD)
        state, rest = word & STATES, word & ~(STATES | ASKED)
        if state == OPEN:
            self.iterations += 1
            self.write(ITERATIONS, self.iterations)
            say(self)
        stops = 0 < self.read(STOP_AT) <= self.read(STEPS)
        if state == CLOSING or (state == OPEN and (word & ASKED or stops)):
            self.write(WORD, rest | IDLE)
            self._peer.ring()
        elif state == IDLE:
            self.write(WORD, rest | WANTED)
            self._peer.ring()
        time.sleep(PAUSE_SECONDS)


def counts(runner: Runner) -> None:
    """No lie: a step for each iteration."""
    runner.write(STEPS, runner.iterations)
    runner.write(TRAINING, 10**6)


def says_nothing(_: Runner) -> None:
    """It makes no steps, as a program that evaluates for long."""


def swings(runner: Runner) -> None:
    """Steps that go on beyond all bounds, and back."""
    runner.write(STEPS, (1 << 60) * (runner.iterations % 2))
    runner.write(TRAINING, 1 << 60)


def is_fast(runner: Runner) -> None:
    """A row of so many steps would last for years."""
    runner.write(TRAINING, 1)


LIES: dict[str, tuple[Say, Message, Message]] = {
    "none": (counts, {}, {}),
    "no steps": (says_nothing, {}, {}),
    "an end far away": (says_nothing, {"held_term": 5}, {"stop_at": 1 << 60}),
    "steps that swing": (swings, {}, {}),
    "steps of a nanosecond": (is_fast, {}, {}),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_job_has_turns_beside_a_gang_whatever_its_ranks_say(lie: str) -> None:
    say, hello, register = LIES[lie]

    def lead(rank: int) -> None:
        who = GANG | {"rank": rank}
        runner = Runner(box, f"cpu:{rank}", who | hello, who | register)
        while True:
            runner.go_on(say)

    with shared_box(*OPTIONS) as box, ExitStack() as stack:
        for rank in range(2):
            stack.callback(StrangerProcess(lambda rank=rank: lead(rank)).kill)
        single = Runner(box, "cpu:0", {}, {})
        stack.callback(single.close)
        before = 0
        end = time.monotonic() + PATIENCE_SECONDS
        while single.iterations < TURNS:
            single.go_on(says_nothing)
            if before == 0 and single.iterations > 0:
                before = iterations_of_rank(box)
            assert time.monotonic() < end, f"{single.iterations} iterations beside the gang"
        beside = iterations_of_rank(box) - before
    assert beside < MOST_PER_TURN * TURNS


def iterations_of_rank(box: SharedBox) -> int:
    """Of the rank on the job's device."""
    (device,) = (each for each in box.client.status()["devices"] if each["device"] == "cpu:0")
    return sum(row["iterations"] for row in device["jobs"] if row["uid"] != 0)
