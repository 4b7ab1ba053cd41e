"""Valid messages in strange orders, and connections that claim what is another's."""

from __future__ import annotations

import os
import struct
import time
import traceback
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.hostile.inputs import encode
from tests.hostile.orders import DEVICES, ORDERS, Step
from tests.hostile.peer import Message, Peer
from tests.hostile.shared_box import STRANGER, SharedBox, as_stranger, shared_box
from tests.hostile.test_inputs import be_served

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")

TWO_DEVICES = ("--devices", "cpu:0=64MiB,cpu:1=64MiB")
# Of the lease page (csrc/wire/lease_page.h).
WORD = slice(64, 72)
ITERATIONS = slice(192, 216)
TRAINING = slice(368, 376)
WANTED, OPEN, STATES = 1, 2, 7


@pytest.fixture
def box() -> Iterator[SharedBox]:
    """A coordinator that serves strangers after the test as it did before."""
    with shared_box() as box:
        yield box
        assert box.answers()
        # A process that was a job stays one while it lives: the test's own is left out.
        assert all(row["pid"] == os.getpid() for row in box.jobs())
        as_stranger(lambda: be_served(box))


def speak(box: SharedBox, steps: list[Step], descriptor: int) -> None:
    """Sends the messages of one order on a connection of their own."""
    peer = Peer(box.path)
    for step in steps:
        message = encode(peer.message(step.kind, **step.changes))
        fds = [descriptor] if step.with_descriptor else []
        if step.kind == "hello" and not step.with_descriptor:
            if peer.hello(**step.changes) is None:
                break
        elif not peer.send(message, fds):
            break
    peer.close()


def test_orders_that_no_job_has(box: SharedBox) -> None:
    def attack() -> None:
        descriptor = os.eventfd(0, os.EFD_NONBLOCK)
        for steps in ORDERS.values():
            speak(box, steps, descriptor)

    as_stranger(attack)


def asked(peer: Peer, kind: str, **changes: object) -> Message:
    """What the coordinator answers to a message; an end without an answer fails."""
    if kind == "hello":
        answer = peer.hello(**changes)
    else:
        answer = peer.ask(encode(peer.message(kind, **changes)))
    assert answer is not None, (kind, changes)
    return answer


def test_a_process_has_one_connection_that_is_its_job(box: SharedBox) -> None:
    def attack() -> None:
        first, second = Peer(box.path), Peer(box.path)
        number = asked(first, "hello")["job"]
        refused = asked(second, "hello", job=number)
        assert refused["type"] == "refused"
        assert "has a connection already" in refused["reason"]
        # A child that was forked has a connection of its own, and is another job.
        child = os.fork()
        if child == 0:
            welcome = asked(Peer(box.path), "hello", job=number, pid=os.getppid())
            os._exit(welcome["job"] == number)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert asked(first, "explain")["type"] == "explained", "the job is still there"

    as_stranger(attack)


def test_a_connection_that_outlives_its_process_is_no_job(box: SharedBox) -> None:
    """A child has the connection of its parent, which has ended."""

    def attack() -> None:
        told, tell = os.pipe()
        parent = os.fork()
        if parent == 0:
            peer = Peer(box.path)
            is_welcome = asked(peer, "hello")["type"] == "welcome"
            if not is_welcome or os.fork() != 0:
                os._exit(0)
            while peer.receive() is not None:
                pass
            os.write(tell, b".")
            os._exit(0)
        os.waitpid(parent, 0)
        os.close(tell)
        assert os.read(told, 1) == b".", "the child's connection was not ended"

    as_stranger(attack)


def test_a_process_that_changes_its_user_stays_the_job_of_the_one_before(box: SharedBox) -> None:
    """Its room is counted as that user's, whose limits are not the other's."""

    def come_and_go() -> None:
        with closing(Peer(box.path)) as peer:
            assert asked(peer, "hello")["type"] == "welcome"
        os.setuid(STRANGER)
        answer = asked(Peer(box.path), "hello")
        assert answer["type"] == "refused"
        assert "is a job of user 0, and speaks as user" in answer["reason"]
        (row,) = box.jobs()
        assert row["uid"] == 0

    child = os.fork()
    if child == 0:
        code = 1
        try:
            come_and_go()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_job_that_comes_back_keeps_its_number_from_strangers(box: SharedBox) -> None:
    """After a crash another user is there first, and says that he is the job."""

    def come() -> None:
        assert asked(peer, "hello", command="mine")["type"] == "welcome"
        assert asked(peer, "register", name="mine", paused_by_uid=...)["type"] == "registered"

    with closing(Peer(box.path)) as peer:
        come()
        box.crash()

    def attack() -> None:
        claim = {"job": 1, "pid": os.getppid(), "uid": 0, "held_term": 5, "command": "mine"}
        stranger = Peer(box.path)
        answer = asked(stranger, "hello", **claim)
        if answer["type"] == "welcome":
            asked(stranger, "register", name="mine", paused_by_uid=...)
            (row,) = box.jobs()
            assert (row["uid"], row["pid"]) == (STRANGER, os.getpid())

    as_stranger(attack)
    with closing(Peer(box.path)) as peer:
        come()
        rows = [row for row in box.jobs() if row["uid"] == 0]
        assert [(row["pid"], row["name"]) for row in rows] == [(os.getpid(), "mine")]


def test_a_gang_is_its_users(box: SharedBox) -> None:
    """A stranger takes the name of a gang: he is in none of its leases and pauses."""
    gang = {"gang": "sweep", "ranks": 2}

    def attack() -> None:
        theirs = Peer(box.path)
        assert asked(theirs, "hello", rank=1, **gang)["type"] == "welcome"
        assert asked(theirs, "register", rank=1, **gang)["type"] == "registered"
        rows = {row["uid"]: row for row in box.jobs()}
        assert rows[STRANGER]["paused_by_uid"] == STRANGER
        assert rows[0]["paused_by_uid"] is None, "the gang of another user was paused"
        # A lease that he says he holds with the gang is not ours.
        assert rows[0]["state"] != "running"

    with closing(Peer(box.path)) as ours:
        assert asked(ours, "hello", rank=0, **gang)["type"] == "welcome"
        registered = asked(ours, "register", rank=0, paused_by_uid=..., **gang)
        assert registered["type"] == "registered", registered
        as_stranger(attack)


def test_devices_that_no_job_can_have() -> None:
    with shared_box(*TWO_DEVICES) as box:

        def attack() -> None:
            for name, changes in DEVICES.items():
                peer = Peer(box.path)
                answer = peer.hello(**changes)
                if answer is not None:
                    assert answer["type"] in {"welcome", "refused"}, (name, answer)
                    assert len(str(answer)) < 1000, name
                    assert "\n" not in str(answer.get("reason", "")), name
                peer.close()

        as_stranger(attack)
        assert box.num_jobs() == 0
        as_stranger(lambda: be_served(box))
        capacities = [device["capacity_bytes"] for device in box.client.status()["devices"]]
        assert capacities == [64 << 20, 64 << 20]


def test_work_without_end_makes_no_device_look_idle() -> None:
    """The times of so many iterations overflowed, and every other job was placed beside this one.

    The job runs three iterations of a second each, as its page says.
    """
    with shared_box(*TWO_DEVICES) as box:

        def attack() -> None:
            peer = Peer(box.path)
            assert asked(peer, "hello", device="cpu:0")["type"] == "welcome"
            asked(peer, "register", iterations_total=18_445_744_073, paused_by_uid=...)
            page = peer.page
            assert page is not None
            page[WORD] = struct.pack("<Q", WANTED)
            peer.ring()
            while struct.unpack("<Q", page[WORD])[0] & STATES != OPEN:
                time.sleep(0.001)
            (word,) = struct.unpack("<Q", page[WORD])
            page[ITERATIONS] = struct.pack("<QQq", 3, 3, 3 * 10**9)
            page[TRAINING] = struct.pack("<q", 10**9)
            page[WORD] = struct.pack("<Q", word & ~STATES)
            peer.ring()
            while box.jobs()[0]["iterations"] != 3:
                time.sleep(0.001)
            child = os.fork()
            if child == 0:
                os._exit(asked(Peer(box.path), "hello", device="cpu")["device"] != "cpu:1")
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

        as_stranger(attack)
