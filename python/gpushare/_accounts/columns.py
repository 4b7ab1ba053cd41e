"""What is known of a finished job: one table from which schema, output and documentation follow.

``docs/accounts.md`` has the definition of each column; a test holds the two together.
"""

from __future__ import annotations

from typing import NamedTuple


class Stored(NamedTuple):
    """A field of a journal's line, and a column of the table ``parts`` of the archive."""

    name: str
    """In both."""
    kind: type
    """``int`` or ``str``."""
    merge: str = "last"
    """How the parts of a job become one: "last" part's value, "sum", "max" or "min"."""
    is_private: bool = False
    """Kept from users who may not see all of another user's job."""
    may_be_missing: bool = False
    """Whether null is allowed: it is not known."""
    since: int = 1
    """The first version of a line that has it. Of an older line it counts as 0, or as no text."""
    bits: int = 64
    """Into so many a number must fit, with its sign."""


STORED = (
    Stored("id", str),
    Stored("host", str),
    Stored("device", str),
    Stored("epoch", int),
    Stored("job", int),
    Stored("pid", int, is_private=True),
    Stored("uid", int),
    Stored("name", str),
    Stored("group", str),
    Stored("command", str, is_private=True),
    Stored("policy", str),
    Stored("start_ns", int, "min"),
    Stored("end_ns", int, "max"),
    Stored("end", str),
    Stored("wait_status", int, is_private=True, may_be_missing=True, bits=32),
    Stored("held_ns", int, "sum"),
    Stored("waited_ns", int, "sum"),
    Stored("switching_ns", int, "sum"),
    Stored("leases", int, "sum"),
    Stored("iterations", int, "max"),
    Stored("optimizer_steps", int, "max"),
    Stored("busy_ns", int, "max"),
    Stored("dropped_bytes", int, "max"),
    Stored("spilled_bytes", int, "max"),
    Stored("restored_bytes", int, "max"),
    Stored("peak_bytes", int, "max"),
    Stored("gang", str, since=2),
    Stored("ranks", int, since=2),
)
"""As a line of the newest version has them (``csrc/daemon/files/account.cpp``)."""

PART_KEY = ("host", "device", "epoch", "job")
"""What a part has alone: the same line, read twice, is one part."""
JOB_KEY = ("host", "device", "id")
"""What the parts of one job share."""

JOB_COLUMNS = (
    "id", "job", "uid", "user", "name", "group", "host", "device", "policy",
    "start", "end", "how", "exit_code", "signal",
    "wall_seconds", "held_seconds", "waited_seconds", "switching_seconds", "busy_seconds",
    "leases", "iterations", "optimizer_steps",
    "iterations_per_second", "iterations_per_second_alone",
    "spilled_bytes", "restored_bytes", "dropped_bytes", "peak_bytes",
    "pid", "command", "gang", "ranks",
)  # fmt: skip
"""Of ``history`` and ``report``, in the order of csv."""

USAGE_COLUMNS = (
    "jobs", "wall_seconds", "held_seconds", "held_share", "waited_seconds", "switching_seconds",
    "busy_seconds", "leases", "iterations", "spilled_bytes", "restored_bytes", "dropped_bytes",
)  # fmt: skip
"""Of ``usage``, behind the column that was asked for: ``user``, ``group`` or ``day``."""
