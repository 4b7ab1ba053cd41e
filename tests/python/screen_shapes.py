"""Reports of many shapes, for tests of what fits into a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.python.fake_coordinator import make_job, make_report

GIB = 1 << 30
Shape = Callable[[], dict[str, Any]]


def _with_jobs(*jobs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    report = make_report(**changes)
    report["devices"][0]["jobs"] = [{"room_bytes": 0, **job} for job in jobs]
    for lane in report["devices"][0]["lanes"]:
        lane.setdefault("pool_bytes", 0)
    return report


def _two(**changes: Any) -> dict[str, Any]:
    """Two jobs, of which the second is changed."""
    return _with_jobs(make_job(1, "gpt"), make_job(2, "vit") | changes)


def _device(**changes: Any) -> dict[str, Any]:
    report = _two()
    report["devices"][0] |= changes
    return report


def _sizes(size: int) -> dict[str, int]:
    names = "room resident spilled live outside lane donated overflow need persistent ephemeral"
    totals = "dropped_total spilled_total restored_total"
    return {f"{name}_bytes": size for name in (*names.split(), *totals.split())}


def _many(count: int) -> dict[str, Any]:
    jobs = [
        make_job(
            number,
            f"trial-{number}-of-the-night",
            state=("running", "waiting", "idle", "paused")[number % 4],
            uid=4_000_000 + number % 3,
            group=f"sweep-{number % 2}",
            share=number / count,
            explain="waits for 1 (trial-1)'s boundary, at most 0.9 s" if number % 4 == 1 else "",
            **_sizes(number * 123_456_789),
        )
        for number in range(1, count + 1)
    ]
    return _with_jobs(*jobs)


def _of_users() -> dict[str, Any]:
    report = _two(uid=0)
    user = {"share_limit": 0.25, "memory_limit_bytes": 3 * GIB, "memory_bytes": GIB}
    report["devices"][0]["users"] = [
        {"uid": 4_000_000 + i, "name": f"the-department-of-physics-{i}" * 2, **user}
        for i in range(3)
    ]
    return report


def _on_two_devices() -> dict[str, Any]:
    report = _two()
    second = dict(report["devices"][0])
    second["device"] = "cuda:GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"
    second["jobs"] = [make_job(7, "on-the-gpu", state="running", **_sizes(70 * GIB))]
    report["devices"].append(second)
    return report


def _unmanaged(count: int, command: str = "python x.py") -> dict[str, Any]:
    row = make_report()["unmanaged"][0]
    rows = [row | {"pid": 4_000_000 + i, "command": command} for i in range(count)]
    return make_report(unmanaged=rows, unmanaged_unreadable=3)


def _recovering() -> dict[str, Any]:
    report = _two()
    report["coordinator"]["is_recovering"] = True
    return report


def _lanes() -> dict[str, Any]:
    report = _two()
    lane = report["devices"][0]["lanes"][0]
    report["devices"][0]["lanes"] = [
        lane | {"lane": i, "pool_bytes": 1234 << 20, "switch_loss": 0.1} for i in range(8)
    ]
    return report


_LONG = "waits for 3 (gpt)'s boundary, asked for it 0.1 s ago, at most 0.9 s. "
_WIDE = "学習ジョブ-日本語の名前-とても長い"
_ALL_AT_ONCE = {
    "uid": 0, "state": "suspended", "priority": "opportunistic", "group": "hyper-parameter-sweep",
    "share": 1.0, "iterations": 123_456_789, "iterations_total": 999_999_999,
    "iterations_per_second": 12345.6, "iterations_per_second_alone": 23456.7,
    "waited_seconds": 86_400.0 * 300, "command": "python -m train --learning-rate 0.1 " * 9,
    "explain": _LONG * 3, **_sizes(1023 * GIB),
}  # fmt: skip

SHAPES: dict[str, Shape] = {
    "as drawn": _two,
    "no job": _with_jobs,
    "one job": lambda: _with_jobs(make_job(1, "gpt", state="running")),
    "new job": lambda: _two(iterations=0),
    "no name": lambda: _two(name=""),
    "long name": lambda: _two(name="an-experiment-with-a-name-" * 6),
    "long names": lambda: _with_jobs(*(make_job(i, f"run-{i}-" * 20) for i in range(1, 4))),
    "wide name": lambda: _two(name=_WIDE),
    "long wide name": lambda: _two(name=_WIDE * 5),
    "combined marks": lambda: _two(name="e\u0301a\u0300" * 30),
    "emoji": lambda: _two(name="\N{ROCKET}\N{FIRE}" * 12),
    "escapes": lambda: _two(name="\x1b[2Jgone\n\t", group="\x1b]0;x", explain="waits\x1b[31m"),
    "group": lambda: _two(group="sweep"),
    "long group": lambda: _two(group="hyper-parameter-sweep-of-november" * 3),
    "wide group": lambda: _two(group=_WIDE),
    "several users": lambda: _two(uid=0),
    "users with limits": _of_users,
    "limited job": lambda: _two(share_limit=0.125, memory_limit_bytes=3 * GIB, is_elastic=True),
    "priority": lambda: _two(priority="opportunistic", state="suspended"),
    "large number": lambda: _two(job=123_456_789),
    "huge bytes": lambda: _two(**_sizes(1 << 60)),
    "shared bytes": lambda: _two(lane_bytes=1023 << 20),
    "huge rates": lambda: _two(iterations_per_second=1e7, iterations_per_second_alone=1e8),
    "long wait": lambda: _two(waited_seconds=1e8, explain=_LONG),
    "long texts": lambda: _two(explain=_LONG * 5),
    "one endless word": lambda: _two(explain="waits " + "x" * 500),
    "an endless wide word": lambda: _two(explain="waits " + "日" * 300),
    "all at once": lambda: _two(name="an-experiment-" * 9, **_ALL_AT_ONCE),
    "20 jobs": lambda: _many(20),
    "200 jobs": lambda: _many(200),
    "two devices": _on_two_devices,
    "lanes": _lanes,
    "transfers": lambda: _device(transfer_budget_bytes_per_second=GIB, asked_total_bytes=GIB,
                                 planned_spill_total_bytes=GIB, dropped_total_bytes=GIB,
                                 spilled_total_bytes=1000 * GIB),
    "host in two parts": lambda: _device(host_file_used_bytes=GIB, host_file_budget_bytes=2 * GIB),
    "nearly full host": lambda: _device(host_used_bytes=4 * GIB - 1),
    "overdrawn": lambda: _device(free_bytes=-(98 << 20)),
    "one stranger": lambda: _unmanaged(1),
    "strangers": lambda: _unmanaged(40, command="python " + "/a/very/long/path" * 12),
    "warnings": lambda: _two() | {"warnings": [{"device": "cpu", "text": _LONG * 2}] * 2},
    "recovering": _recovering,
    "left out": lambda: _two() | {"jobs_left_out": 4000},
}  # fmt: skip
