"""One peer that is no job of ours: `python -m tests.faults.peer WHAT SOCKET SEED`.

It lives for a second or two. What it says and asks is drawn from the seed. Its exit status is 1 if
it was answered as the protocol forbids; a coordinator that is gone, or stopped, has not answered.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import random
import socket
import sys
import time
from pathlib import Path
from typing import Any

from tests.hostile import inputs
from tests.hostile import peer as hostile_peer
from tests.hostile.peer import Peer

_MOST_MESSAGES = 30
_LIFE_SECONDS = 1.0
_ANSWER_SECONDS = 1.0
_REQUESTS = ("set", "set_policy", "stop")
"""Valid values are among the strange ones, and whose coordinator it is may ask for these."""
_NEWER_VERSION = 3
_PLACE_SECONDS = 5.0
_SERVE_SECONDS = 1.5


def garbage(path: str, rng: random.Random) -> None:
    """Bytes that are no message, before and after hello."""
    for name in rng.sample(list(inputs.GARBAGE), 5):
        peer = Peer(path)
        if rng.random() < 0.5:
            peer.hello()
        peer.send(inputs.GARBAGE[name])
        peer.close()


def messages(path: str, rng: random.Random) -> None:
    """Messages with one field that is not as it should be."""
    strange = [each for each in inputs.strange_messages() if each[1] not in _REQUESTS]
    for _, kind, changes in rng.sample(strange, _MOST_MESSAGES):
        peer = Peer(path)
        if kind != "hello":
            peer.hello()
        if kind not in {"hello", "register"}:
            peer.register()
        peer.send(inputs.encode(peer.message(kind, **changes)))
        peer.close()


def page(path: str, rng: random.Random) -> None:
    """A job whose lease page shows one lie after the other."""
    peer = Peer(path)
    if peer.hello() is None or peer.register() is None or peer.page is None:
        return
    end = time.monotonic() + _LIFE_SECONDS
    for _ in itertools.islice(inputs.strange_pages(peer), rng.randrange(400), None, 7):
        if time.monotonic() > end:
            break
        peer.ring()
        time.sleep(0.01)
    peer.close()


def version(path: str, rng: random.Random) -> None:
    """A message or a hello of another protocol: the one before is served, others are refused."""
    for field in rng.sample(("v", "protocol"), 2):
        number = rng.choice((0, 2, 3, 1 << 31))
        peer = Peer(path)
        changes: dict[str, Any] = {"pid": os.getpid(), field: number}
        answer = peer.ask(peer.message("hello") | changes)
        peer.close()
        if answer is None:
            continue
        is_served = field == "protocol" and number == 0
        wanted = "welcome" if is_served else "refused"
        assert answer["type"] == wanted, f"{field} {number}: {answer}"
        assert is_served or "protocol" in answer["reason"], answer


def coordinator(path: str, rng: random.Random) -> None:
    """Takes the coordinator's place, and answers as one that speaks a newer protocol."""
    lock = Path(f"{path}.lock").open("a")  # noqa: SIM115  # held to the end of the process
    end = time.monotonic() + _PLACE_SECONDS
    while True:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        if time.monotonic() > end:
            return
        with contextlib.suppress(OSError):
            Peer(path).ask({"v": 1, "type": "stop", "force": True})
    reason = f"protocol version 1 is not spoken here; this side speaks {_NEWER_VERSION}"
    answers = [
        {"v": _NEWER_VERSION, "type": "refused", "reason": reason},
        {"v": 1, "type": "refused", "reason": reason},
        {"v": _NEWER_VERSION, "type": "salute", "of": {}},
    ]
    _serve(path, json.dumps(rng.choice(answers)).encode())


def _serve(path: str, answer: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        fresh = f"{path}.new"
        listener.bind(fresh)
        listener.listen()
        os.rename(fresh, path)  # noqa: PTH104
        end = time.monotonic() + _SERVE_SECONDS
        while (left := end - time.monotonic()) > 0:
            listener.settimeout(left)
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(_ANSWER_SECONDS)
                    connection.recv(1 << 18)
                    connection.send(answer)
        os.unlink(path)  # noqa: PTH108


def main() -> None:
    """See the module's text."""
    what, path, seed = sys.argv[1:]
    hostile_peer.TIMEOUT_SECONDS = _ANSWER_SECONDS  # the coordinator may be stopped
    acts = {act.__name__: act for act in (garbage, messages, page, version, coordinator)}
    with contextlib.suppress(OSError):  # no coordinator, or one that does not answer
        acts[what](path, random.Random(int(seed)))


if __name__ == "__main__":
    main()
