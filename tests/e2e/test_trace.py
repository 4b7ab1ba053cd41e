"""`gpushare trace record` beside real jobs: what it draws is what the coordinator counted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from gpushare.cli._targets.coordinators import DeviceSockets, ask_each
from gpushare.cli.trace.record import Recording
from tests.e2e.asking import status, wait_until
from tests.support.job_process import JobProcess

if TYPE_CHECKING:
    from gpushare.cli.trace.tracks import DeviceTracks

JOBS = ("first", "second")
Device = dict[str, Any]
TakingTurns = tuple[dict[str, str], list[JobProcess]]


@pytest.fixture
def taking_turns(coordinator: Callable[..., dict[str, str]]) -> Any:
    """Two jobs that do not fit together and take turns, and their environment."""
    env = coordinator(capacity="12MiB", policy="rr", min_quantum="20ms", lanes="off")
    with ExitStack() as stack:
        jobs = [
            stack.enter_context(
                JobProcess(
                    *("--name", name, "--mib", "8"),
                    env=env,
                    module="tests.e2e.metrics_job",
                )
            )
            for name in JOBS
        ]
        for job in jobs:
            job.wait_ready().go()
        wait_until(lambda: status(env)["devices"][0]["switches"] > 4)
        yield env, jobs


def _recorded(env: dict[str, str], least_leases: int) -> tuple[Recording, list[Device]]:
    """A recording in which each job got so many leases, and the device at each look."""
    sockets = [DeviceSockets("cpu", [env["GPUSHARE_SOCKET"]])]
    recording, looks = Recording(), []

    def look() -> bool:
        (answer,) = ask_each(sockets)
        recording.add(answer.report, time.monotonic())
        looks.append(answer.report["devices"][0])
        leases = [[job["leases"] for job in looks[index]["jobs"]] for index in (0, -1)]
        return all(now - then >= least_leases for then, now in zip(*leases, strict=True))

    wait_until(look)
    for tracks in recording.tracks.values():
        tracks.finish()
    return recording, looks


def _slices(tracks: DeviceTracks, name: str) -> list[tuple[float, float, int]]:
    """Beginnings, ends and jobs, in order."""
    found = [e for e in tracks.events if e.kind == "slice" and e.name == name]
    return sorted((each.at, each.at + each.seconds, each.track) for each in found)


def test_leases_cover_all_that_was_served(taking_turns: TakingTurns) -> None:
    env, jobs = taking_turns
    recording, looks = _recorded(env, 4)
    (tracks,) = recording.tracks.values()
    leases = _slices(tracks, "lease")
    # One lane: each lease ends before the next one begins, and that is the other job's.
    assert all(one[1] <= other[0] + 1e-6 and one[2] != other[2] for one, other in pairwise(leases))
    for number, name in tracks.names.items():
        mine = [(begin, end) for begin, end, job in leases if job == number]
        assert len(mine) >= 4
        then, now = ([job for job in looks[i]["jobs"] if job["name"] == name] for i in (0, -1))
        served = now[0]["served_seconds"] - then[0]["served_seconds"]
        assert sum(end - begin for begin, end in mine) == pytest.approx(served, abs=1e-6)
        waits = [each[:2] for each in _slices(tracks, "waits for a lease") if each[2] == number]
        assert waits
        assert all(one[1] <= other[0] + 1e-6 for one, other in pairwise(sorted([*mine, *waits])))
    _check_file(json.loads(json.dumps(recording.trace())))
    for job in jobs:
        job.go().outcome()
    # A job that has closed its part has moved what it moved.
    for before, after in zip(looks[-1]["jobs"], status(env)["devices"][0]["jobs"], strict=True):
        assert after["spilled_total_bytes"] >= before["spilled_total_bytes"] > 0


def _check_file(trace: dict[str, Any]) -> None:
    """A track for each job and one for memory, and all kinds of slices on them."""
    events = trace["traceEvents"]
    titles = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert set(titles.values()) == {*JOBS, "memory asked for"}
    drawn = {(titles[e["tid"]], e["name"]) for e in events if e["ph"] == "X"}
    assert drawn == {
        *((name, what) for name in JOBS for what in ("lease", "waits for a lease")),
        *(("memory asked for", f"asked of {name}") for name in JOBS),
    }
    spilled = [e["args"]["spilled"] for e in events if "spilled" in e.get("args", {})]
    assert {each > 0 for each in spilled} == {True, False}
    assert min(e["ts"] for e in events if e["ph"] != "M") == 0
