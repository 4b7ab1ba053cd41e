"""Valid messages in orders that no honest job has, and names and sizes of devices.

An order is the steps of one connection. A step is a message's type, its changed fields (`...`: the
field is left out), and whether a descriptor goes with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tests.hostile.peer import Message


class Step(NamedTuple):
    """One message of an order."""

    kind: str
    changes: Message
    with_descriptor: bool = False


def step(kind: str, *, with_descriptor: bool = False, **changes: Any) -> Step:
    """A message of this type with these changed fields."""
    return Step(kind, changes, with_descriptor)


HELLO = step("hello")
REGISTER = step("register", paused_by_uid=...)
UNREGISTER = step("unregister")
NEED = step("need")
MIB = 1 << 20

ORDERS: dict[str, list[Step]] = {
    "register before hello": [REGISTER],
    "need before hello": [NEED],
    "released before hello": [step("released")],
    "consumed before hello": [step("consumed")],
    "lane before hello": [step("lane_changed")],
    "unregister before hello": [UNREGISTER],
    "explain before hello": [step("explain")],
    "status, then hello, then status": [step("status_request", why=7), HELLO],
    "hello twice": [HELLO, HELLO],
    "hello twice with a descriptor": [HELLO, step("hello", with_descriptor=True)],
    "hello after register": [HELLO, REGISTER, HELLO],
    "register twice": [HELLO, REGISTER, REGISTER],
    "register twice with descriptors": [
        HELLO,
        step("register", with_descriptor=True, paused_by_uid=...),
        step("register", with_descriptor=True, paused_by_uid=...),
    ],
    "unregister without register": [HELLO, UNREGISTER],
    "unregister twice": [HELLO, REGISTER, UNREGISTER, UNREGISTER],
    "registrations without end": [HELLO, *[REGISTER, UNREGISTER] * 100],
    "everything after unregister": [
        HELLO,
        REGISTER,
        UNREGISTER,
        NEED,
        step("consumed", n=0),
        step("explain"),
        step("lane_changed"),
    ],
    "consumed, what was never granted": [HELLO, step("consumed", n=1 << 60)],
    "consumed in no order": [HELLO, NEED, *(step("consumed", n=n) for n in (1, 0, 1, 1))],
    "released, what nobody asked for": [HELLO, step("released", n=1, released_bytes=MIB)],
    "released again and again": [HELLO, *[step("released")] * 50],
    "more and more of it": [HELLO, *[step("released", more=True)] * 50],
    "the same need": [HELLO, *[NEED] * 50],
    "needs without end": [HELLO, *(step("need", n=n, only_free=False) for n in range(100))],
    "needs that go back": [HELLO, *(step("need", n=n) for n in range(60, 0, -1))],
    "a need of everything": [
        HELLO,
        REGISTER,
        step("need", need_bytes=1 << 50, like_bytes=1 << 50, only_free=False),
    ],
    "a need that likes less": [HELLO, step("need", need_bytes=8 * MIB, like_bytes=0)],
    "a need with more room than there is": [HELLO, step("need", room_bytes=1 << 50)],
    "lane changes before a page": [HELLO, step("lane_changed")],
    "lane changes that skip numbers": [HELLO, REGISTER, step("lane_changed", n=9)],
    "gives back slots of nobody": [HELLO, REGISTER, step("lane_changed", returned=[0, 1, 2])],
    "keeps slots of nobody": [HELLO, REGISTER, step("lane_changed", donated=[5], returned=[5])],
    "a lease out of nowhere": [step("hello", held_term=5)],
    "a lease and no page": [step("hello", held_term=5), NEED, UNREGISTER],
    "a lease of another gang": [step("hello", held_term=5), step("register", gang="other")],
    "the last lease": [step("hello", held_term=(1 << 59) - 1), REGISTER],
    "slots out of nowhere": [step("hello", lane_epoch=1, lane_slots=list(range(64))), REGISTER],
    "the same slot": [step("hello", lane_epoch=1, lane_slots=[3] * 64), REGISTER],
    "memory out of nowhere": [step("hello", resident_bytes=1 << 50), REGISTER, NEED],
    "the host tier out of nowhere": [step("hello", spilled_bytes=1 << 50), REGISTER, NEED],
    "more ranks than jobs": [HELLO, step("register", gang="g", rank=4095, ranks=4096)],
    "another rank than before": [
        step("hello", gang="g", rank=0, ranks=2),
        step("register", gang="g", rank=1, ranks=2),
        UNREGISTER,
        step("register", gang="h", rank=0, ranks=2),
    ],
    "a question on a job's connection": [HELLO, REGISTER, step("status_request", why=1)],
    "a change on a job's connection": [HELLO, REGISTER, step("set")],
    "a policy on a job's connection": [HELLO, REGISTER, step("set_policy")],
    "a place on a job's connection": [HELLO, REGISTER, step("place")],
    "places with false figures": [
        step("place", used_bytes=text) for text in ("-1", "1e99", "9" * 60, "x", "," * 8000, "nan")
    ],
    "places on nothing": [step("place", devices=text) for text in ("", ",", "cpu", ",," * 4000)],
    "a stop on a job's connection": [HELLO, REGISTER, step("stop")],
}
"""Each is a connection of its own. Where it ends is up to the coordinator."""

DEVICES: dict[str, Message] = {
    "no name": {"device": ""},
    "any": {"device": "any"},
    "capitals": {"device": "CPU:0"},
    "zeros before": {"device": "cpu:00"},
    "negative": {"device": "cpu:-1"},
    "too many": {"device": "cpu:99999999999999999999"},
    "not here": {"device": "cpu:7"},
    "cuda": {"device": "cuda:0"},
    "cuda with a path": {"device": "cuda:../../etc/passwd"},
    "a path": {"device": "../sock"},
    "a space": {"device": "cpu:0 "},
    "two": {"device": "cpu:0,cpu:1"},
    "a size": {"device": "cpu:0=1GiB"},
    "lines": {"device": "cpu:0\n[warning] forged"},
    "escapes": {"device": "\x1b[2Jcpu:0"},
    "long": {"device": "cpu:" + 60_000 * "0"},
    "all memory": {"device": "cpu", "resident_bytes": 1 << 60},
    "more than all": {"device": "cpu", "resident_bytes": (1 << 60) + 1},
    "a device of one byte": {"device": "cpu:1", "device_total_bytes": 1, "device_free_bytes": 1},
    "a device without bound": {"device": "cpu:1", "device_total_bytes": 1 << 60},
    "more free than there is": {"device": "cpu:1", "device_free_bytes": 1},
    "all of the host tier": {"device": "cpu:1", "spilled_bytes": 1 << 60},
    "pieces of nothing": {"device": "cpu:1", "device_piece_bytes": 0},
    "pieces without bound": {"device": "cpu:1", "device_piece_bytes": 1 << 60},
}
"""Changed fields of a hello to a coordinator that has cpu:0 and cpu:1."""
