"""Where an iteration begins and ends, from what hooks see: pure Python, no torch, no clock.

Each event returns what is to be done: NOTHING, BEGIN, END, or END_BEGIN (first end, then begin);
``kind`` and ``is_optimizer_step`` describe the END. Hooks only hint at *when*: a wrong boundary
costs time, never memory or results, because closing and opening a lease keep memory safe by
themselves.

What training loops look like from here:

- plain: forward, step. The forward begins, the step ends.
- accumulation: several forwards, one step. No boundary until the step.
- several optimizers (GAN): a step that comes without a forward after the last boundary shows that
  this boundary came too early, so ``expected_steps`` rises; it falls again when later iterations
  are regularly shorter. A forward after a step ends the iteration whatever was expected.
- closures (LBFGS, Lightning) and optimizers around optimizers (SAM): all inside one outer step,
  which ends the iteration when it ends.
- optimizer in backward, or no torch optimizer: after two forwards without a step it is clear that
  none will come, and from then on the next forward ends an iteration.
- loops that never call the registered module: each step is both end and begin.
- evaluation: the end of a forward, unless it stands between a training forward and its step.
"""

from __future__ import annotations

from collections.abc import Callable

NOTHING = 0
BEGIN = 1
END = 2
END_BEGIN = END | BEGIN

MAX_EXPECTED_STEPS = 8
"""More steps without a forward than this are a loop that does not call the registered module."""
SHORT_ITERATIONS_TO_FORGET = 16
"""So many iterations with fewer steps than expected lower the expectation."""
FORWARDS_WITHOUT_STEP = 2
"""After so many training forwards, where no optimizer is known, nobody will step."""
FORWARDS_TO_DOUBT_STEP = 64
"""After so many, even a known optimizer will not: inference in training mode."""
LIVE_BYTES_FACTOR = 3
"""A boundary with this many times the live bytes of the last one stands in mid-iteration."""
LIVE_BYTES_SLACK = 64 << 20
"""Live bytes that never count as too many."""
MAX_REFUSALS = 3
"""So many boundaries in a row may be refused for their live bytes; then that is the new normal."""


class Boundaries:
    """The state machine. One a job; not thread-safe: hooks run under the GIL."""

    __slots__ = (
        "_baseline_bytes",
        "_evaluations",
        "_expected_steps",
        "_explicit",
        "_forwards",
        "_has_forward_begun",
        "_has_optimizer",
        "_is_next_forward",
        "_is_only_steps",
        "_live_bytes",
        "_num_refusals",
        "_num_short",
        "_steps",
        "_steps_in_backward",
        "depth",
        "is_active",
        "is_only_explicit",
        "is_optimizer_step",
        "kind",
        "stepping",
    )

    def __init__(
        self, *, has_optimizer: bool = False, live_bytes: Callable[[], int] | None = None
    ) -> None:
        """Begins outside an iteration.

        Args:
            has_optimizer: The user named an optimizer: wait for it.
            live_bytes: Tells cheaply how many bytes are live; None: do not look.
        """
        self.is_active = False
        """Whether an iteration runs."""
        self.is_only_explicit = False
        """Whether ``with job.iteration()`` was used: from then on only it makes boundaries."""
        self.depth = 0
        """Forwards of the registered module that are under way, one inside the other."""
        self.kind = ""
        """Of the last END: explicit, optimizer, scaler, forward or next_forward."""
        self.is_optimizer_step = False
        """Whether an optimizer step led to the last END."""
        self._live_bytes = live_bytes
        self._has_optimizer = has_optimizer
        self._steps_in_backward = False
        self._is_next_forward = False  # learnt: the next forward ends an iteration
        self._is_only_steps = False
        self._explicit = False  # inside `with job.iteration()`
        self._has_forward_begun = False  # since the last job.step()
        self._forwards = 0  # training forwards of this iteration
        self._evaluations = 0  # evaluation forwards since the last training forward
        self._steps = 0  # optimizer steps since the iteration began, the late ones included
        self._expected_steps = 1
        self._num_short = 0
        self.stepping: set[int] = set()
        """id() of the optimizers whose step has begun and not ended."""
        self._baseline_bytes = 0
        self._num_refusals = 0

    def forward_began(self, is_in_backward: bool) -> int:
        """The registered module is called."""
        if is_in_backward or self.is_only_explicit:
            return NOTHING
        self.depth += 1
        if self.depth > 1:
            return NOTHING
        self._has_forward_begun = True
        self._is_only_steps = False
        if not self.is_active:
            return self._begin()
        if self.stepping:  # a closure
            return NOTHING
        if self._steps:
            self._note_short_iteration()
            return self._end_and_begin("optimizer", is_optimizer_step=True)
        if self._forwards and self._ends_at_next_forward():
            return self._end_and_begin("next_forward", is_optimizer_step=False)
        return NOTHING

    def forward_ended(self, is_evaluation: bool, is_in_backward: bool) -> int:
        """The registered module has returned."""
        if is_in_backward or not self.depth:
            return NOTHING
        self.depth -= 1
        if self.depth or not self.is_active or self.is_only_explicit:
            return NOTHING
        if not is_evaluation:
            self._forwards += 1
            self._evaluations = 0
            return NOTHING
        if self.stepping:
            return NOTHING
        self._evaluations += 1
        # One evaluation forward inside a training iteration (a teacher, a sample) is part of it.
        if self._evaluations > 1 or not (self._forwards or self._steps):
            return self._end("forward", is_optimizer_step=False)
        return NOTHING

    def step_began(self, optimizer: int, is_in_backward: bool) -> None:
        """An optimizer's step begins; ``optimizer`` is its id()."""
        if not is_in_backward:
            self.stepping.add(optimizer)

    def step_ended(self, optimizer: int, is_in_backward: bool) -> int:
        """An optimizer's step has ended."""
        if is_in_backward:
            self._steps_in_backward = True
            return NOTHING
        self.stepping.discard(optimizer)
        if self.stepping or self.is_only_explicit:
            return NOTHING
        self._has_optimizer = True
        self._is_next_forward = False
        self._steps += 1
        if not self.is_active:
            return self._note_late_step()
        if self._is_only_steps:
            return self._end_and_begin("optimizer", is_optimizer_step=True)
        if self._steps < self._expected_steps:
            return NOTHING
        if self._steps == self._expected_steps:
            self._num_short = 0
        return self._end("optimizer", is_optimizer_step=True)

    def scaler_updated(self, is_in_backward: bool) -> int:
        """A GradScaler was updated: the end of an iteration, also of one without a step."""
        if is_in_backward or self.is_only_explicit or self.depth or not self.is_active:
            return NOTHING
        if self._steps:
            return self._end("optimizer", is_optimizer_step=True)
        return self._end("scaler", is_optimizer_step=False) if self._forwards else NOTHING

    def stepped(self) -> int:
        """``job.step()``: the user says that here is a boundary."""
        has_forward = self._has_forward_begun
        self._has_forward_begun = False
        if not self.is_active:
            # Without a forward since the last call, none will begin the next iteration.
            return NOTHING if has_forward else self._begin()
        self._describe("explicit", is_optimizer_step=False)
        if has_forward:
            self.is_active = False
            return END
        self._begin()
        return END_BEGIN

    def iteration_entered(self) -> int:
        """``with job.iteration():`` begins; from now on only these are boundaries.

        Raises:
            RuntimeError: Inside another one.
        """
        if self._explicit:
            raise RuntimeError('gpushare: "with job.iteration()" inside another one')
        self._explicit = True
        self.is_only_explicit = True
        was_active = self.is_active
        self._describe("explicit", is_optimizer_step=False)
        self._begin()
        return END_BEGIN if was_active else BEGIN

    def iteration_left(self) -> int:
        """``with job.iteration():`` ends without an exception."""
        self._explicit = False
        if not self.is_active:
            return NOTHING
        self.is_active = False
        self._describe("explicit", is_optimizer_step=False)
        return END

    def failed(self) -> None:
        """An exception has left the iteration, and the lease is closed."""
        self.is_active = False
        self._explicit = False
        self.depth = 0
        self._steps = 0  # a step that the loop still makes is no late one
        self.stepping.clear()

    @property
    def persistent_bytes(self) -> int:
        """Bytes that were live at the last boundary; 0 where that is not known."""
        return self._baseline_bytes

    def _begin(self) -> int:
        self.is_active = True
        self._forwards = self._evaluations = self._steps = 0
        return BEGIN

    def _describe(self, kind: str, *, is_optimizer_step: bool) -> None:
        self.kind = kind
        self.is_optimizer_step = is_optimizer_step

    def _end(self, kind: str, *, is_optimizer_step: bool) -> int:
        if self._has_too_much_live():
            return NOTHING
        self.is_active = False
        self._describe(kind, is_optimizer_step=is_optimizer_step)
        return END

    def _end_and_begin(self, kind: str, *, is_optimizer_step: bool) -> int:
        if not self._end(kind, is_optimizer_step=is_optimizer_step):
            return NOTHING
        self._begin()
        return END_BEGIN

    def _ends_at_next_forward(self) -> bool:
        if self._forwards >= FORWARDS_WITHOUT_STEP and not self._waits_for_step():
            self._is_next_forward = True
        return self._is_next_forward or self._forwards >= FORWARDS_TO_DOUBT_STEP

    def _waits_for_step(self) -> bool:
        return self._has_optimizer and not self._steps_in_backward

    def _note_late_step(self) -> int:
        """A step after the boundary: it came too early, or nobody calls the registered module."""
        if self._has_forward_begun and self._steps <= MAX_EXPECTED_STEPS:
            self._expected_steps = max(self._expected_steps, self._steps)
            return NOTHING
        self._is_only_steps = True
        self._expected_steps = 1
        return self._begin()

    def _note_short_iteration(self) -> None:
        self._num_short += 1
        if self._num_short >= SHORT_ITERATIONS_TO_FORGET:
            self._expected_steps = self._steps
            self._num_short = 0

    def _has_too_much_live(self) -> bool:
        if self._live_bytes is None:
            return False
        live = self._live_bytes()
        limit = LIVE_BYTES_FACTOR * self._baseline_bytes + LIVE_BYTES_SLACK
        if self._baseline_bytes and live > limit and self._num_refusals < MAX_REFUSALS:
            self._num_refusals += 1
            return True
        self._num_refusals = 0
        self._baseline_bytes = live
        return False
