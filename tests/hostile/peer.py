"""One connection of an attacker: he speaks the coordinator's protocol as he likes."""

from __future__ import annotations

import array
import json
import mmap
import os
import socket
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]

TIMEOUT_SECONDS = 20.0
PAGE_BYTES = 4096

ADDRESS: Message = {"job": 0, "device": "cpu", "gang": "", "rank": 0, "ranks": 1}
CHANGES: Message = {
    "priority": "normal",
    "weight": 1.0,
    "memory_limit_bytes": 0,
    "deadline_ns": 0,
    "share_limit": 0.0,
    "is_elastic": False,
    "is_paused": False,
}
MESSAGES: dict[str, Message] = {
    "hello": {
        "protocol": 1,
        "version": "0.1.0",
        "command": "python x.py",
        "pid": 1,
        "uid": 0,
        **ADDRESS,
        "resident_bytes": 0,
        "spilled_bytes": 0,
        "spilled_file_bytes": 0,
        "held_term": 0,
        "lane_epoch": 0,
        "lane_slots": [],
        "device_total_bytes": 0,
        "device_free_bytes": 0,
        "device_piece_bytes": 2 << 20,
        "program": "",
    },
    "register": {
        **ADDRESS,
        "name": "attacker",
        "group": "",
        **{key: value for key, value in CHANGES.items() if key != "is_paused"},
        "paused_by_uid": 0,
        "iterations_total": 0,
        "iterations_done": 0,
        "fingerprint": 0,
        "stop_at": 0,
        "arbiter": "",
    },
    "need": {
        **ADDRESS,
        "n": 1,
        "need_bytes": 2 << 20,
        "like_bytes": 2 << 20,
        "only_free": True,
        "room_bytes": 0,
    },
    "released": {
        **ADDRESS,
        "n": 0,
        "released_bytes": 0,
        "dropped_bytes": 0,
        "spilled_bytes": 0,
        "spilled_file_bytes": 0,
        "spilled_late_bytes": 0,
        "unplaced_bytes": 0,
        "more": False,
        "with_lease": False,
        "need_n": 0,
        "held": False,
        "reason": "",
    },
    "consumed": {**ADDRESS, "n": 1},
    "lane_changed": {
        **ADDRESS,
        "n": 1,
        "given_bytes": 0,
        "num_chunks": 0,
        "donated": [],
        "returned": [],
    },
    "explain": {**ADDRESS},
    "unregister": {**ADDRESS},
    "status_request": {"why": 1},
    "set": {"job": 1, **CHANGES},
    "set_policy": {"policy": "fifo"},
    "place": {"devices": "cuda:GPU-00000000-0000-0000-0000-000000000000", "used_bytes": "0"},
    "stop": {"force": True},
}
"""A valid message of each type. The coordinator may refuse some to the user who sends them."""


class Peer:
    """A connection to the coordinator; closed by ``close`` or with the object."""

    def __init__(self, path: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """Connects. No call on this connection waits longer than `timeout_seconds`."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(timeout_seconds)
        self._socket.connect(path)
        self._address = dict(ADDRESS)
        self.page: mmap.mmap | None = None
        self.event = -1

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()

    def message(self, kind: str, **changes: Any) -> Message:
        """A message of this type that names this connection's job, with changed fields."""
        fields = MESSAGES[kind]
        address = {key: value for key, value in self._address.items() if key in fields}
        if kind == "set":
            address = {}
        return {"v": 1, "type": kind, **fields, **address, **changes}

    def send(self, message: Message | bytes, fds: Sequence[int] = ()) -> bool:
        """Sends it; false: the connection has ended, or its descriptors were refused."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._socket.sendmsg([data], rights)
        except OSError:
            return False
        return True

    def receive(self) -> Message | None:
        """The next message of the coordinator; None at the end of the connection."""
        try:
            data, fds, _, _ = socket.recv_fds(self._socket, 1 << 18, 8)
        except ConnectionResetError:
            return None
        if len(fds) == 2:
            self.page = mmap.mmap(fds[0], PAGE_BYTES)
            self.event = fds[1]
            os.close(fds[0])
        return json.loads(data) if data else None

    def ask(self, message: Message | bytes, fds: Sequence[int] = ()) -> Message | None:
        """Sends it, and the answer; None: the connection ended instead."""
        return self.receive() if self.send(message, fds) else None

    def hello(self, **changes: Any) -> Message | None:
        """Becomes a job, if the coordinator says so."""
        answer = self.ask(self.message("hello", **changes))
        if answer is not None and answer["type"] == "welcome":
            self._address |= {key: answer[key] for key in ("job", "device")}
        return answer

    def register(self, **changes: Any) -> Message | None:
        """Gets a page, if the coordinator gives one."""
        return self.ask(self.message("register", **changes))

    def ring(self) -> None:
        """Has the coordinator look at the page."""
        os.write(self.event, (1).to_bytes(8, "little"))
