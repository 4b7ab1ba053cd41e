"""Strange messages, pages and descriptors of another user: they cost only him his connection.

After each kind the coordinator is the same process, has the descriptors that it had, and serves a
job of somebody else.
"""

from __future__ import annotations

import os
import select
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.hostile import inputs
from tests.hostile.peer import Peer
from tests.hostile.shared_box import SharedBox, as_stranger, shared_box

MOST_GROWTH_BYTES = 16 << 20
SO_PASSRIGHTS = 83
"""The socket option of this name in Linux; Python does not have it."""
MOST_SPARE_DESCRIPTORS = 4
"""The coordinator may still hold descriptors of questions that it is answering."""


@pytest.fixture
def box() -> Iterator[SharedBox]:
    with shared_box() as box:
        before = box.num_descriptors(), box.resident_bytes()
        yield box
        assert box.answers()
        assert box.num_jobs() == 0
        assert box.num_descriptors() <= before[0] + MOST_SPARE_DESCRIPTORS
        assert box.resident_bytes() < before[1] + MOST_GROWTH_BYTES
        as_stranger(lambda: be_served(box))


def be_served(box: SharedBox) -> None:
    peer = Peer(box.path)
    answer = peer.hello()
    assert answer is not None
    assert answer["type"] == "welcome", answer
    answer = peer.register()
    assert answer is not None
    assert answer["type"] == "registered", answer


def test_bytes_that_are_no_message(box: SharedBox) -> None:
    def attack() -> None:
        for name, data in inputs.GARBAGE.items():
            for is_job in (False, True):
                answer = inputs.send_garbage(box.path, data, is_job=is_job)
                assert answer is None or answer["type"] in {"refused", "status_report"}, name

    as_stranger(attack)


def test_messages_with_a_strange_field(box: SharedBox) -> None:
    def attack() -> None:
        for _, kind, changes in inputs.strange_messages():
            inputs.send_strange(box.path, kind, changes)

    as_stranger(attack)


def test_pages_full_of_lies(box: SharedBox) -> None:
    def attack() -> None:
        peer: Peer | None = None
        pages: Iterator[str] = iter(())
        is_over = False
        num_pages = 0
        while not is_over:
            peer = Peer(box.path)
            peer.hello()
            peer.register()
            pages = inputs.strange_pages(peer)
            # A page that shows an impossible word ends the connection; the next one goes on.
            for number, _ in enumerate(pages):
                if number < num_pages:
                    continue
                num_pages = number + 1
                peer.ring()
                if not peer.send(peer.message("explain")):
                    break
                answer = peer.receive()
                while answer is not None and answer["type"] not in {"explained", "refused"}:
                    answer = peer.receive()
                if answer is None or answer["type"] == "refused":
                    break
            else:
                is_over = True
            peer.close()
        assert num_pages > 500, "not all pages were tried"

    as_stranger(attack)


def _descriptors(stack: ExitStack) -> list[tuple[str, list[int]]]:
    pipe = os.pipe()
    pair = socket.socketpair()
    listener = stack.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    # This connection is closed by the end of the process, which does not wait for its peer.
    connection = socket.socket()
    connection.connect(listener.getsockname())
    lingering = b"\x01\x00\x00\x00\x10\x0e\x00\x00"  # on, for an hour
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, lingering)
    connection.setblocking(False)
    connection.send(bytes(1 << 22))
    epoll = select.epoll()
    stack.callback(epoll.close)
    blocking_event = os.eventfd(0)
    os.set_blocking(blocking_event, True)
    with tempfile.TemporaryFile() as file:
        plain = os.dup(file.fileno())
    kinds = {
        "event": os.eventfd(0, os.EFD_NONBLOCK),
        "blocking event": blocking_event,
        "pipe to read": pipe[0],
        "pipe to write": pipe[1],
        "socket": pair[0].detach(),
        "its other end": pair[1].detach(),
        "lingering connection": connection.detach(),
        "listener": listener.fileno(),
        "file": plain,
        "folder": os.open("/", os.O_RDONLY),
        "path": os.open("/", os.O_PATH),
        "memory": os.memfd_create("x"),
        "nothing": os.open("/dev/null", os.O_RDWR),
        "zeros": os.open("/dev/zero", os.O_RDWR),
        "process": os.pidfd_open(os.getpid()),
        "epoll": epoll.fileno(),
    }
    return [(name, [fd]) for name, fd in kinds.items()] + [("many", [kinds["event"]] * 200)]


def _refuses_descriptors() -> bool:
    """Whether the kernel refuses to pass descriptors to a socket that wants none (Linux 6.16)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as fresh:
        try:
            fresh.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        except OSError:
            return False
    return True


def test_descriptors_that_nobody_asked_for(box: SharedBox) -> None:
    is_refused = _refuses_descriptors()

    def attack() -> None:
        with ExitStack() as stack:
            for name, fds in _descriptors(stack):
                for kind in ("hello", "register", "status_request", "explain"):
                    peer = Peer(box.path)
                    if kind in {"register", "explain"}:
                        peer.hello()
                    assert peer.send(peer.message(kind), fds) != is_refused, (name, kind)
                    # The connection has not ended where only the descriptors were refused.
                    assert not is_refused or peer.send(peer.message(kind)), (name, kind)
                    peer.send(b"", fds)
                    peer.close()

    as_stranger(attack)
