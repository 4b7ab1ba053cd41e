"""The state machine against tables of training loops.

A loop is a string of events: F training forward, E evaluation forward, S T steps of two optimizers,
s step inside backward, U GradScaler.update, J job.step(), ( ) explicit iteration, X exception,
f .. g begin and end of a forward, [ .. ] an outer optimizer's step (a closure, SAM).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare.boundaries import (
    BEGIN,
    END,
    FORWARDS_TO_DOUBT_STEP,
    MAX_EXPECTED_STEPS,
    SHORT_ITERATIONS_TO_FORGET,
    Boundaries,
)

OUTER = 99


def play(machine: Boundaries, events: str) -> list[str]:
    """What the machine says to each event: "", "begin", "end KIND", "end KIND, begin"."""
    said = []
    for event in events.replace(" ", ""):
        said += [_name(machine, action) for action in _apply(machine, event)]
    return said


def boundaries_in(machine: Boundaries, events: str) -> str:
    """The same, short: one sign an event: - nothing, b begin, e end, x end and begin."""
    return "".join(
        "-" if not text else "x" if ", " in text else text[0] for text in play(machine, events)
    )


def _apply(machine: Boundaries, event: str) -> list[int]:
    match event:
        case "F" | "E":
            began = machine.forward_began(False)
            return [began | machine.forward_ended(event == "E", False)]
        case "f":
            return [machine.forward_began(False)]
        case "g":
            return [machine.forward_ended(False, False)]
        case "S" | "T":
            machine.step_began(ord(event), False)
            return [machine.step_ended(ord(event), False)]
        case "s":
            machine.step_began(ord("s"), True)
            return [machine.step_ended(ord("s"), True)]
        case "[":
            machine.step_began(OUTER, False)
            return [0]
        case "]":
            return [machine.step_ended(OUTER, False)]
        case "U":
            return [machine.scaler_updated(False)]
        case "J":
            return [machine.stepped()]
        case "(":
            return [machine.iteration_entered()]
        case ")":
            return [machine.iteration_left()]
        case "X":
            machine.failed()
            return [0]
        case _:
            raise ValueError(event)


def _name(machine: Boundaries, action: int) -> str:
    star = "*" if machine.is_optimizer_step else ""
    parts = [f"end {machine.kind}{star}"] if action & END else []
    return ", ".join(parts + (["begin"] if action & BEGIN else []))


# What each loop is, its events, and one sign for each event.
LOOPS = [
    ("plain", "FS FS FS", "be be be"),
    ("accumulation", "FFFFS FFFFS", "b-xxe b---e"),
    ("evaluation after training", "FS E E FS", "be x x be"),
    ("one evaluation forward inside an iteration", "FEFS FS", "b--e be"),
    ("evaluation after an unfinished iteration", "F E E E", "b - e x"),
    ("two optimizers, one forward", "FST FST FST", "be- b-e b-e"),
    ("GAN that calls the model for each step", "FSFT FSFT", "bebe bebe"),
    ("optimizer in backward", "Fss Fss Fss Fss", "b-- --- x-- x--"),
    ("no torch optimizer", "F F F F", "b - x x"),
    ("no torch optimizer, then evaluation", "FFFF EE F", "b-xx xx b"),
    ("scaler skips a step", "FU FSU FU", "be be- be"),
    ("scaler and two optimizers", "FSTU FSTU FSU", "be-- b-e- b-e"),
    ("closure with many forwards", "[FFFFF] [FFF]", "-b----e -b--e"),
    ("closure around a step (SAM)", "F[SFS] F[SFS]", "b----e b----e"),
    ("model is never called", "S S S", "b x x"),
    ("model is called again", "S S FS FS", "b x -e be"),
    ("job.step() beside hooks", "FSJ FSJ", "be- be-"),
    ("job.step() without a step", "FJ FJ", "be be"),
    ("job.step() alone", "J J J", "b x x"),
    ("explicit", "(FS) (FFS) FS", "b--e b---e --"),
    ("explicit in mid-iteration", "F(F)", "bx-e"),
    ("exception, then again", "FXFS", "b-be"),
    ("exception inside a forward", "fXFS", "b-be"),
    ("exception inside a step", "F[X FS", "b-- be"),
    ("exception inside an explicit iteration", "(X (F)", "b- b-e"),
    ("a module that calls itself", "ffgg S", "b--- e"),
    ("a step of a stale outer step", "F[ [ ] F", "b- - e b"),
]


@pytest.mark.parametrize(("events", "signs"), [row[1:] for row in LOOPS], ids=[r[0] for r in LOOPS])
def test_finds_the_boundaries_of(events, signs):
    assert boundaries_in(Boundaries(), events) == signs.replace(" ", "")


def test_says_what_kind_of_boundary_it_was():
    assert play(Boundaries(), "FS FU E J") == [
        "begin", "end optimizer*",
        "begin", "end scaler",
        "end forward, begin",
        "",
    ]  # fmt: skip
    assert play(Boundaries(), "FFF")[-1] == "end next_forward, begin"
    assert play(Boundaries(), "FJ (")[1:] == ["end explicit", "begin"]


def test_with_a_named_optimizer_accumulation_is_whole_from_the_start():
    assert boundaries_in(Boundaries(has_optimizer=True), "FFFFS FFFFS") == "b---eb---e"


def test_a_named_optimizer_that_steps_in_backward_is_not_waited_for():
    assert boundaries_in(Boundaries(has_optimizer=True), "FsFsFsFs") == "b---x-x-"


def test_a_known_optimizer_is_not_waited_for_without_end():
    machine = Boundaries(has_optimizer=True)
    signs = boundaries_in(machine, "F" * (FORWARDS_TO_DOUBT_STEP + 1))
    assert signs == "b" + "-" * (FORWARDS_TO_DOUBT_STEP - 1) + "x"


def test_after_a_step_the_next_forward_is_a_boundary_where_more_steps_were_expected():
    machine = Boundaries()
    play(machine, "FST FST")
    assert play(machine, "FS F") == ["begin", "", "end optimizer*, begin"]


def test_expects_fewer_steps_when_iterations_stay_shorter():
    machine = Boundaries()
    play(machine, "FST" * 2 + "FS" * SHORT_ITERATIONS_TO_FORGET + "F")
    assert boundaries_in(machine, "S FS") == "ebe"


def test_a_full_iteration_restarts_the_count_of_short_ones():
    machine = Boundaries()
    play(machine, "FST" + ("FS" * (SHORT_ITERATIONS_TO_FORGET - 1) + "FST") * 2)
    assert boundaries_in(machine, "FST") == "b-e"


def test_many_steps_without_a_forward_are_iterations_themselves():
    machine = Boundaries()
    signs = boundaries_in(machine, "F" + "S" * (MAX_EXPECTED_STEPS + 3))
    assert signs == "be" + "-" * (MAX_EXPECTED_STEPS - 1) + "bxx"


def test_inside_backward_nothing_is_a_boundary():
    machine = Boundaries()
    machine.forward_began(False)
    machine.forward_ended(False, False)
    assert machine.forward_began(True) == 0
    assert machine.forward_ended(True, True) == 0
    assert machine.scaler_updated(True) == 0
    assert machine.is_active


def test_explicit_iterations_do_not_nest():
    machine = Boundaries()
    machine.iteration_entered()
    with pytest.raises(RuntimeError, match="inside another"):
        machine.iteration_entered()


class Live:
    def __init__(self):
        self.bytes = 0

    def __call__(self):
        return self.bytes


def test_a_boundary_with_far_more_live_bytes_than_before_is_none():
    live = Live()
    machine = Boundaries(live_bytes=live)
    live.bytes = 100 << 20
    assert boundaries_in(machine, "FS") == "be"
    live.bytes = 500 << 20
    assert boundaries_in(machine, "FS") == "b-"
    live.bytes = 100 << 20
    assert boundaries_in(machine, "FS") == "xe"


def test_a_job_that_stays_larger_gets_its_boundaries_back():
    live = Live()
    machine = Boundaries(live_bytes=live)
    live.bytes = 100 << 20
    play(machine, "FS")
    live.bytes = 500 << 20
    assert boundaries_in(machine, "FS FS FS FS FS").count("e") >= 2
    assert boundaries_in(machine, "FS FS") == "bebe"


def test_small_jobs_are_never_refused():
    live = Live()
    machine = Boundaries(live_bytes=live)
    live.bytes = 1 << 20
    play(machine, "FS")
    live.bytes = 50 << 20
    assert boundaries_in(machine, "FS") == "be"


@given(st.text(alphabet="FESTsUJ[]fgX", max_size=60))
def test_any_events_begin_and_end_in_turn(events):
    machine = Boundaries()
    is_in_iteration = False
    for event in events:
        for action in _apply(machine, event):
            if event == "X":
                is_in_iteration = False
            # An evaluation is two events here: begin and then end.
            if event in "FE" and action == BEGIN | END and not is_in_iteration:
                continue
            if action & END:
                assert is_in_iteration
                is_in_iteration = False
            if action & BEGIN:
                assert not is_in_iteration
                is_in_iteration = True
        if event not in "FE":
            assert machine.is_active == is_in_iteration
        is_in_iteration = machine.is_active


@given(st.text(alphabet="FESTsUJ", max_size=60))
def test_a_loop_of_any_shape_reaches_a_boundary_again_and_again(events):
    if not set(events) & set("FESTJ"):
        return
    machine = Boundaries()
    signs = boundaries_in(machine, events * 200)
    assert sum(sign in "ex" for sign in signs[len(signs) // 2 :]) >= 1
