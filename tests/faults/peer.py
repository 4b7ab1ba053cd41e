"""One peer that is no job of ours: `python -m tests.faults.peer WHAT SOCKET SEED`.

The peer lives for a second or two, and draws what it says and asks from the seed. Its exit status
is 1 if an answer is one that the protocol forbids. A coordinator that is gone, or stopped, gives
none.
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
from tests.hostile.peer import Peer

_MOST_MESSAGES = 30
_LIFE_SECONDS = 1.0
_ANSWER_SECONDS = 1.0
"""A peer waits so long for an answer. The coordinator may be stopped."""
_REQUESTS = ("set", "set_policy", "stop")
"""Left out: some strange values are valid, and the coordinator's owner may ask for these."""
_NEWER_VERSION = 3
_PLACE_SECONDS = 5.0
_SERVE_SECONDS = 1.5


def _peer(path: str) -> Peer:
    return Peer(path, timeout_seconds=_ANSWER_SECONDS)


def garbage(path: str, rng: random.Random) -> None:
    """Bytes that are no message, before and after hello."""
    for data in rng.sample(list(inputs.GARBAGE.values()), 5):
        is_job = rng.random() < 0.5
        inputs.send_garbage(path, data, is_job=is_job, timeout_seconds=_ANSWER_SECONDS)


def messages(path: str, rng: random.Random) -> None:
    """Messages with one field that is not as it should be."""
    strange = [each for each in inputs.strange_messages() if each[1] not in _REQUESTS]
    for _, kind, changes in rng.sample(strange, _MOST_MESSAGES):
        inputs.send_strange(path, kind, changes, timeout_seconds=_ANSWER_SECONDS)


def page(path: str, rng: random.Random) -> None:
    """A job whose lease page shows one lie after the other."""
    peer = _peer(path)
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
        peer = _peer(path)
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
            _peer(path).ask({"v": 1, "type": "stop", "force": True})
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
    """Does one act, as the module's text says."""
    what, path, seed = sys.argv[1:]
    acts = {act.__name__: act for act in (garbage, messages, page, version, coordinator)}
    with contextlib.suppress(OSError):  # no coordinator, or one that does not answer
        acts[what](path, random.Random(int(seed)))


if __name__ == "__main__":
    main()
