"""The benchmarks' exact solver, against a formula and against trying everything."""

from __future__ import annotations

import itertools

import pytest

from benchmarks.least_moves import Turns, fewest_spilled, spilled_least_recently_used


@pytest.mark.parametrize("jobs", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("ephemeral", [0, 7])
def test_equal_jobs_move_what_the_formula_says(jobs: int, ephemeral: int) -> None:
    live = 100
    for capacity in (live + ephemeral, 110 + ephemeral, jobs * live - 40 + ephemeral):
        turns = Turns(
            capacity=capacity,
            live=[live] * jobs,
            need=[live + ephemeral] * jobs,
            order=range(jobs),
        )
        lacking = jobs * live - (capacity - ephemeral)
        assert fewest_spilled(turns) == pytest.approx(lacking * jobs / (jobs - 1))


def test_jobs_that_fit_together_move_nothing() -> None:
    turns = Turns(capacity=70, live=[30, 20, 10], need=[40, 22, 15], order=[0, 1, 2])
    assert fewest_spilled(turns) == 0
    assert spilled_least_recently_used(turns) == 0


def test_least_recently_used_order_moves_everything_where_the_next_goes_first() -> None:
    turns = Turns(capacity=100, live=[50] * 3, need=[50] * 3, order=[0, 1, 2])
    assert spilled_least_recently_used(turns) == 150
    assert fewest_spilled(turns) == 75


def test_a_job_that_does_not_fit_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="job 1: live 5, need 11 of 10"):
        Turns(capacity=10, live=[5, 5], need=[6, 11], order=[0, 1])


def _fewest_by_trying_all(turns: Turns, *, cycles: int) -> float:
    """Mean over the second half: the least to get to each state, turn by turn, in whole units."""
    jobs = range(len(turns.live))
    states = list(itertools.product(*(range(live + 1) for live in turns.live)))
    cost = dict.fromkeys(states, 0)
    halfway = 0
    for cycle in range(cycles):
        if cycle == cycles // 2:
            halfway = min(cost.values())
        for runner in turns.order:
            ephemeral = turns.need[runner] - turns.live[runner]
            after: dict[tuple[int, ...], int] = {}
            for state, spent in cost.items():
                kept = [[turns.live[j]] if j == runner else range(state[j] + 1) for j in jobs]
                for then in itertools.product(*kept):
                    if sum(then) + ephemeral > turns.capacity:
                        continue
                    gone = sum(max(0, state[j] - then[j]) for j in jobs)
                    after[then] = min(after.get(then, spent + gone), spent + gone)
            cost = after
    return (min(cost.values()) - halfway) / (cycles - cycles // 2)


@pytest.mark.parametrize(
    ("capacity", "live", "need", "order"),
    [
        (4, [3, 3], [3, 3], [0, 1]),
        (5, [2, 2, 2], [2, 3, 2], [0, 1, 2]),
        (5, [4, 1, 2], [4, 2, 3], [0, 1, 2]),
        (4, [2, 2, 1], [3, 2, 3], [0, 1, 0, 2]),
        (5, [1, 3, 2], [4, 3, 2], [2, 1, 0]),
    ],
)
def test_nothing_better_is_found_by_trying_everything(
    capacity: int, live: list[int], need: list[int], order: list[int]
) -> None:
    turns = Turns(capacity=capacity, live=live, need=need, order=order)
    assert fewest_spilled(turns) == pytest.approx(_fewest_by_trying_all(turns, cycles=24))
    assert spilled_least_recently_used(turns) >= fewest_spilled(turns)
