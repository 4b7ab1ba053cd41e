"""Who has paused a job: the coordinator knows it, whatever the job says, and whoever may not.

A job registers anew when its coordinator has ended, and says then whether it is paused. The
coordinator believed that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from gpushare._coordinator.client import CoordinatorClient, RefusedError
from tests.hostile.peer import Peer
from tests.hostile.shared_box import STRANGER, SharedBox, StrangerProcess, shared_box

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")

UNPAUSED = "paused_by_uid"
"""A job that is not paused leaves this field out."""


class Steps:
    """Lets this process and an attacker's take turns."""

    def __init__(self) -> None:
        self._to_attacker, self._to_us = os.pipe(), os.pipe()

    def go(self) -> None:
        """Lets the attacker do the next thing, and waits until that is done."""
        os.write(self._to_attacker[1], b".")
        assert os.read(self._to_us[0], 1) == b".", "the attacker has failed, see its output"

    def do(self, act: Callable[[], None]) -> None:
        """In the attacker: waits, acts, and tells."""
        os.read(self._to_attacker[0], 1)
        act()
        os.write(self._to_us[1], b".")

    def close_ours(self) -> None:
        """In this process, once the attacker has a copy: its end is then seen."""
        os.close(self._to_us[1])


@contextmanager
def attacker(steps: Steps, *acts: Callable[[], None]) -> Iterator[None]:
    """A process of another user, which does one act after the other, as `steps` says."""

    def attack() -> None:
        for act in acts:
            steps.do(act)
        steps.do(lambda: None)

    process = StrangerProcess(attack)
    steps.close_ours()
    yield
    steps.go()
    process.wait()


def register(peer: Peer, **changes: object) -> None:
    """Registers `peer` as a job that says nothing of a pause, unless `changes` do."""
    message = peer.message("register", **changes)
    if UNPAUSED not in changes:
        del message[UNPAUSED]
    answer = peer.ask(message)
    while answer is not None and answer["type"] != "registered":
        assert answer["type"] != "refused", answer
        answer = peer.receive()  # the news of a change may come before
    assert answer is not None


def comer(box: SharedBox, kept: list[Peer]) -> Callable[[], None]:
    """An act: a job connects and registers, and is kept there."""

    def come() -> None:
        peer = Peer(box.path)
        assert peer.hello() is not None
        register(peer)
        kept.append(peer)

    return come


def paused_by(box: SharedBox) -> int | None:
    """Who has paused the only job."""
    (job,) = box.jobs()
    return job["paused_by_uid"]


def test_a_job_cannot_name_who_has_paused_it() -> None:
    with shared_box() as box:

        def attack() -> None:
            peer = Peer(box.path)
            peer.hello()
            register(peer, paused_by_uid=0)
            kept.append(peer)

        kept: list[Peer] = []
        steps = Steps()
        with attacker(steps, attack):
            steps.go()
            assert paused_by(box) == STRANGER


def test_a_job_does_not_end_a_pause_of_the_coordinators_owner() -> None:
    with shared_box() as box:
        kept: list[Peer] = []
        come = comer(box, kept)

        def resume() -> None:
            client = CoordinatorClient([box.path])
            (job,) = (job for device in client.status()["devices"] for job in device["jobs"])
            said = "may not resume job 1 .*, which user root has paused"
            with pytest.raises(RefusedError, match=said):
                client.set_job(job["job"], {"is_paused": False})
            client.set_job(job["job"], {"is_paused": True})  # to make it his own
            with pytest.raises(RefusedError, match=said):
                client.set_job(job["job"], {"is_paused": False})

        def register_again() -> None:
            (peer,) = kept
            peer.send(peer.message("unregister"))
            register(peer)

        steps = Steps()
        with attacker(steps, come, resume, register_again, come):
            steps.go()
            (job,) = box.jobs()
            box.client.set_job(job["job"], {"is_paused": True})
            for _ in ("resume", "register_again"):
                steps.go()
                assert paused_by(box) == 0
            box.crash()
            steps.go()
            assert paused_by(box) == 0, "the next coordinator has forgotten it"
            (job,) = box.jobs()
            box.client.set_job(job["job"], {"is_paused": False})
            assert paused_by(box) is None
            box.crash()


def test_a_job_that_is_resumed_stays_so_in_the_next_coordinator() -> None:
    with shared_box() as box:
        come = comer(box, [])
        steps = Steps()
        with attacker(steps, come, come):
            steps.go()
            (job,) = box.jobs()
            for is_paused in (True, False):
                box.client.set_job(job["job"], {"is_paused": is_paused})
            box.crash()
            steps.go()
            assert paused_by(box) is None
