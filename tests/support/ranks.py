"""Programs of several ranks, as tests start them: a process for each rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.support.job_process import JobProcess

Ranks = list[JobProcess]

WAIT_SECONDS = 120


@contextmanager
def ranks_of(environments: Sequence[Mapping[str, str]], *words: str, **how: Any) -> Iterator[Ranks]:
    """Starts one rank with each of the environments. `how`: what else a `JobProcess` is told."""
    ranks: Ranks = []
    with ExitStack() as stack:
        for number, env in enumerate(environments):
            place = {"RANK": str(number), "WORLD_SIZE": str(len(environments))}
            ranks.append(JobProcess(*words, env={**env, **place}, **how))
            stack.enter_context(ranks[-1])
        yield ranks


def digest_of(ranks: Ranks) -> str:
    """Returns what the ranks of benchmarks/ranks_program.py computed, when all have ended well."""
    digest: str = ranks[0].result()["digest"]
    for rank in ranks:
        assert rank.process.wait(WAIT_SECONDS) == 0, rank.errors()
    return digest
