"""Floods by another user: the coordinator stays small, and a job trains as it does alone.

How much time a flood costs is measured by ``python -m benchmarks.run floods``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import pytest

from tests.e2e.alone import arguments, result_alone
from tests.hostile.floods import FLOODS
from tests.hostile.peer import Peer
from tests.hostile.shared_box import SharedBox, StrangerProcess, shared_box
from tests.support.job_process import JobProcess

STEPS = 60
MOST_GROWTH_BYTES = 32 << 20
MOST_LOG_BYTES = 17 << 20
"""Two files of 8 MiB, and the last line."""
MOST_DESCRIPTORS = 700
"""Enough for the connections that are no job's, and for a few jobs."""


def train(box: SharedBox) -> str:
    """The digest of a job that starts, trains and ends at this coordinator."""
    flags = [*arguments("mlp", "adam", 1, STEPS), "--shared"]
    with JobProcess(*flags, env=box.environment()) as job:
        result = job.wait_ready().go().result()
    assert not result["stats"]["unmanaged_reason"], result["stats"]
    return str(result["digest"])


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_a_job_joins_and_trains_through_a_flood(flood: Callable[[str], NoReturn]) -> None:
    def attack() -> NoReturn:
        # A flood goes on where it is refused; that it gets in at all is seen here.
        answer = Peer(box.path).hello()
        assert answer is not None
        assert answer["type"] == "welcome", answer
        flood(box.path)

    with shared_box() as box:
        before = box.resident_bytes()
        attacker = StrangerProcess(attack)
        try:
            digest = train(box)
            num_descriptors = box.num_descriptors()
            growth = box.resident_bytes() - before
        finally:
            attacker.kill()
        assert box.answers()
        assert box.log_bytes() < MOST_LOG_BYTES
    assert digest == result_alone("mlp", "adam", 1, STEPS)["digest"]
    assert num_descriptors < MOST_DESCRIPTORS
    assert growth < MOST_GROWTH_BYTES
