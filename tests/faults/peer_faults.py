"""Peers that are no jobs, each a process of its own: malformed, or of another version."""

from __future__ import annotations

import random
import signal

from tests.faults.campaign import Campaign, Kind
from tests.faults.job import Excuse

_NEWER = Excuse(unmanaged_words="is not spoken here")
_NEWER_SECONDS = 8.0


def _start(campaign: Campaign, rng: random.Random, what: str) -> str:
    seed = rng.randrange(1 << 32)
    words = [what, str(campaign.coordinator.path), str(seed)]
    # A fault that is meant for the coordinator may meet the peer that has its place.
    killed = (-signal.SIGKILL, -signal.SIGTERM) if what == "coordinator" else ()
    campaign.commands.start("tests.faults.peer", *words, allowed=(0, *killed))
    return f"{what} with seed {seed}"


def bad_peer(campaign: Campaign, rng: random.Random) -> str | None:
    """Garbage, strange messages, and a lease page full of lies, for a second at most."""
    return _start(campaign, rng, rng.choice(("garbage", "messages", "page")))


def other_version(campaign: Campaign, rng: random.Random) -> str | None:
    """A job of an older or newer protocol: it is refused, or served as the protocol says."""
    return _start(campaign, rng, "version")


def newer_coordinator(campaign: Campaign, rng: random.Random) -> str | None:
    """The coordinator ends, and for a while one that speaks a newer protocol has its place."""
    pid = campaign.coordinator.pid()
    if pid is None:
        return None
    campaign.excuse_all(_NEWER_SECONDS, _NEWER)
    return _start(campaign, rng, "coordinator")


KINDS = [
    Kind("malformed peer", 8, bad_peer),
    Kind("peer of another version", 4, other_version),
    Kind("coordinator of a newer version", 1, newer_coordinator),
]
