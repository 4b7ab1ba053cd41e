"""Journals as coordinators write them, for the tests of those that read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SECOND = 1_000_000_000
LINE: dict[str, Any] = {
    "v": 2, "id": "0123456789ab", "epoch": 11, "job": 1, "pid": 4242, "uid": 1001,
    "name": "gpt", "group": "sweep", "command": "python train.py --secret", "host": "box",
    "device": "cpu", "policy": "fair", "start_ns": 1_800_000_000 * SECOND,
    "end_ns": 1_800_000_100 * SECOND, "end": "ended", "wait_status": 0,
    "held_ns": 40 * SECOND, "waited_ns": 50 * SECOND, "switching_ns": SECOND, "leases": 8,
    "iterations": 200, "optimizer_steps": 100, "busy_ns": 39 * SECOND,
    "dropped_bytes": 3, "spilled_bytes": 1 << 20, "restored_bytes": 1 << 19,
    "peak_bytes": 1 << 30, "gang": "", "ranks": 1,
}  # fmt: skip
"""As ``csrc/daemon/files/account.cpp`` writes it."""


def line(**changes: Any) -> str:
    """A line of a journal that differs from ``LINE`` in these fields."""
    return json.dumps(LINE | changes) + "\n"


def write(folder: Path, *lines: str, number: int = 1, device: str = "cpu") -> Path:
    """Writes a journal with these lines."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{device}@box.{number:06}.jsonl"
    path.write_text("".join(lines))
    return path
