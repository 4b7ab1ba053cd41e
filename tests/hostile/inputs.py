"""Inputs that no honest peer sends, by kind, and the peers that send them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

from tests.hostile.peer import MESSAGES, PAGE_BYTES, TIMEOUT_SECONDS, Message, Peer

STRANGE_VALUES: dict[str, Any] = {
    "missing": ...,
    "null": None,
    "negative": -1,
    "2^63": 1 << 63,
    "2^64": 1 << 64,
    "huge": 10**400,
    "fraction": 0.5,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "text": "1",
    "long text": "x" * 70_000,
    "escapes": "\x1b]0;title\x07\x1b[2J\n[info] forged\u009b\u202e",
    "half a surrogate": "\ud800",
    "list": [1, 2, 3],
    "object": {"a": {"b": [None]}},
    "truth": True,
    "many": list(range(50_000)),
}

GARBAGE: dict[str, bytes] = {
    "nothing but a brace": b"{",
    "zeros": bytes(64),
    "no UTF-8": b'{"v":1,"type":"hello","command":"\xff\xfe"}',
    "deep": b"[" * 100_000,
    "deep and closed": b"[" * 20_000 + b"]" * 20_000,
    "a number": b"1e400",
    "a text": b'"hello"',
    "a list": b"[1,2,3]",
    "empty object": b"{}",
    "no type": b'{"v":1}',
    "type of another": b'{"v":1,"type":"grant","n":1}',
    "type of the page": b'{"v":1,"type":"wanted"}',
    "type with a zero": b'{"v":1,"type":"hello\\u0000"}',
    "twice the type": b'{"v":1,"type":"stop","type":"hello"}',
    "version 0": b'{"v":0,"type":"stop","force":true}',
    "version 2": b'{"v":2,"type":"stop","force":true}',
    "too long": b" " * 200_000,
    "a comment": b'/* */{"v":1,"type":"stop","force":true}',
    "trailing": b'{"v":1,"type":"stop","force":true}x',
    "cut off": b'{"v":1,"type":"status_request","why":',
    "many keys": json.dumps({f"key{i}": i for i in range(8000)}).encode(),
}

WORDS = (0, 1, 2, 3, 4, 7, 8, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def strange_messages() -> Iterator[tuple[str, str, Message]]:
    """(name, type, changes) of each message with one field that is not as it should be."""
    for kind, fields in MESSAGES.items():
        for field in fields:
            for name, value in STRANGE_VALUES.items():
                yield f"{kind}.{field}: {name}", kind, {field: value}


def encode(message: Message) -> bytes:
    """Returns the message as JSON, without the fields whose value is `...`."""
    present = {key: value for key, value in message.items() if value is not ...}
    return json.dumps(present).encode()


def send_garbage(
    path: str, data: bytes, *, is_job: bool, timeout_seconds: float = TIMEOUT_SECONDS
) -> Message | None:
    """Sends bytes that are no message, after a hello if the peer `is_job`.

    Returns:
        The coordinator's answer; None if it ended the connection instead.
    """
    peer = Peer(path, timeout_seconds=timeout_seconds)
    if is_job:
        peer.hello()
    answer = peer.ask(data)
    peer.close()
    return answer


def send_strange(
    path: str, kind: str, changes: Message, *, timeout_seconds: float = TIMEOUT_SECONDS
) -> None:
    """Sends a message of this type with changed fields, and goes without waiting for an answer."""
    peer = peer_before(kind, path, timeout_seconds=timeout_seconds)
    peer.send(encode(peer.message(kind, **changes)))
    peer.close()


def peer_before(kind: str, path: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> Peer:
    """A peer that has sent the messages that precede one of this type."""
    peer = Peer(path, timeout_seconds=timeout_seconds)
    if kind != "hello":
        peer.hello()
    if kind not in {"hello", "register"}:
        peer.register()
    return peer


def strange_pages(peer: Peer) -> Iterator[str]:
    """Writes each strange page and names it. The peer has registered."""
    page = peer.page
    assert page is not None
    before = page[:PAGE_BYTES]
    # A job may write here. The lease word itself is at 64.
    for at in range(64, 512, 8):
        for word in WORDS:
            page[:PAGE_BYTES] = before
            page[at : at + 8] = struct.pack("<Q", word)
            yield f"page[{at}] = {word:#x}"
    for pattern in (0x00, 0x5A, 0x7F, 0x80, 0xFF):
        page[:PAGE_BYTES] = bytes([pattern]) * PAGE_BYTES
        yield f"page of {pattern:#x}"
