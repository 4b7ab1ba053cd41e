"""The fewest bytes that jobs which take turns on too little memory must move, exactly.

Nothing here is gpushare's: it is what gpushare's choices are held against. While a job runs, its
live bytes and its ephemeral memory are on the device; of every other job some live bytes may stay,
and what stays from one turn of its job to the next was not moved. An LP, by turns of a cycle that
repeats: keep most, so that at each turn what is kept of the others fits beside the runner. Between
two turns of its job a byte either stays all the time or goes at once: to hold it for a while saves
nothing. Fractions are right, as rounds may differ: bytes are means over many rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, kw_only=True)
class Turns:
    """Jobs that take turns; sizes in bytes, or any other unit."""

    capacity: int
    """What all may use at once."""
    live: Sequence[int]
    """Of each job, what it holds at its boundaries."""
    need: Sequence[int]
    """Of each job, what it holds while it runs: live and ephemeral."""
    order: Sequence[int]
    """The jobs by turns: a cycle that repeats."""

    def __post_init__(self) -> None:
        """Raises ValueError where a job cannot run at all."""
        for number, (live, need) in enumerate(zip(self.live, self.need, strict=True)):
            if not live <= need <= self.capacity:
                raise ValueError(f"job {number}: live {live}, need {need} of {self.capacity}")


def fewest_spilled(turns: Turns) -> float:
    """The least to spill in one cycle; as much must be restored."""
    order = turns.order
    weights = [turns.live[job] for job in order]
    rows: list[list[int]] = []
    bounds: list[int] = []
    absences = [_absence(order, position) for position in range(len(order))]
    for position, runner in enumerate(order):
        rows.append([int(position in absence) for absence in absences])
        bounds.append(turns.capacity - turns.need[runner])
    for position, weight in enumerate(weights):
        rows.append([int(position == other) for other in range(len(order))])
        bounds.append(weight)
    return float(sum(weights) - _most([1] * len(order), rows, bounds))


def _absence(order: Sequence[int], position: int) -> set[int]:
    """The turns of others from this one on until its job's next."""
    length = len(order)
    absence = set()
    for step in range(1, length):
        other = (position + step) % length
        if order[other] == order[position]:
            break
        absence.add(other)
    return absence


def _most(values: Sequence[int], rows: Sequence[Sequence[int]], bounds: Sequence[int]) -> Fraction:
    """Maximum of values * x over x >= 0 with rows * x <= bounds, all bounds >= 0.

    The simplex method on fractions, with Bland's rule, so that it ends.
    """
    width = len(values)
    table = [
        [Fraction(value) for value in row]
        + [Fraction(int(number == other)) for other in range(len(rows))]
        + [Fraction(bound)]
        for number, (row, bound) in enumerate(zip(rows, bounds, strict=True))
    ]
    gain = [Fraction(value) for value in values] + [Fraction(0)] * (len(rows) + 1)
    basis = [width + number for number in range(len(rows))]
    while (enters := next((i for i, g in enumerate(gain[:-1]) if g > 0), None)) is not None:
        ratios = [
            (row[-1] / row[enters], basis[number], number)
            for number, row in enumerate(table)
            if row[enters] > 0
        ]
        leaves = min(ratios)[2]  # there is one: each x is bounded
        pivot = table[leaves][enters]
        table[leaves] = [value / pivot for value in table[leaves]]
        for row in [row for number, row in enumerate(table) if number != leaves] + [gain]:
            if factor := row[enters]:
                row[:] = [a - factor * b for a, b in zip(row, table[leaves], strict=True)]
        basis[leaves] = enters
    return -gain[-1]


def spilled_least_recently_used(turns: Turns, *, cycles: int = 60) -> float:
    """What is spilled in one cycle if room is taken from whoever ran longest ago.

    Only as much as is missing goes, as with gpushare. The mean over the second half of `cycles`:
    the first fill the device.
    """
    resident = [0] * len(turns.live)
    by_use: list[int] = []  # the one that ran longest ago first
    spilled = 0
    for cycle in range(cycles):
        if cycle == cycles // 2:
            spilled = 0
        for runner in turns.order:
            resident[runner] = turns.live[runner]
            if runner in by_use:
                by_use.remove(runner)
            others = sum(resident) - resident[runner]
            missing = max(0, turns.need[runner] + others - turns.capacity)
            for job in by_use:
                gone = min(missing, resident[job])
                resident[job] -= gone
                missing -= gone
                spilled += gone
            by_use.append(runner)
    return spilled / (cycles - cycles // 2)
