"""Floods by one user: each function goes on until its process is killed."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
from collections.abc import Callable
from typing import NoReturn

from tests.hostile.peer import Peer


def hold_connections(path: str) -> NoReturn:
    """Connects and says nothing, as often as it has descriptors for."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 20_000), most))
    held: list[Peer] = []
    while True:
        try:
            held.append(Peer(path))
        except OSError:  # no descriptors, or nobody accepts
            held = held[len(held) // 2 :]


def ask_for_the_status(path: str) -> NoReturn:
    """Asks on 50 connections, and reads what comes."""
    peers = [Peer(path) for _ in range(50)]
    while True:
        for number, peer in enumerate(peers):
            if not peer.send(b'{"v":1,"type":"status_request"}'):
                peers[number] = Peer(path)
        for peer in peers:
            peer.receive()


def ask_and_never_read(path: str) -> NoReturn:
    """Asks until the connection is closed, and again."""
    while True:
        with contextlib.suppress(OSError):
            peer = Peer(path)
            while peer.send(b'{"v":1,"type":"status_request"}'):
                pass
            peer.close()


def send_garbage(path: str) -> NoReturn:
    """Connects, sends what is no message, and goes."""
    while True:
        with contextlib.suppress(OSError):
            peer = Peer(path)
            peer.send(b'{"v":1,"type":"\\u001b[2J')
            peer.close()


def come_and_go(path: str) -> NoReturn:
    """Becomes a job and leaves, again and again."""
    while True:
        with contextlib.suppress(OSError):
            peer = Peer(path)
            peer.hello(command="x" * 4000)
            peer.register(name="y" * 200)
            peer.close()


def ask_why_without_end(path: str) -> NoReturn:
    """A job that asks why it waits, and reads nothing else."""
    while True:
        peer = Peer(path)
        peer.hello()
        peer.register()
        while peer.send(peer.message("explain")) and peer.receive() is not None:
            pass
        peer.close()


def ring_without_end(path: str) -> NoReturn:
    """A job whose page has always changed."""
    peer = Peer(path)
    peer.hello()
    peer.register()
    assert peer.page is not None
    while True:
        peer.page[192:200] = os.urandom(8)
        peer.ring()


def fill_the_queue(path: str) -> NoReturn:
    """Connects without waiting to be let in."""
    while True:
        connections = []
        for _ in range(500):
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.connect(path)
            connections.append(connection)
        for connection in connections:
            connection.close()


FLOODS: list[Callable[[str], NoReturn]] = [
    hold_connections,
    ask_for_the_status,
    ask_and_never_read,
    send_garbage,
    come_and_go,
    ask_why_without_end,
    ring_without_end,
    fill_the_queue,
]
