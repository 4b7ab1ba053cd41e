"""What `gpushare trace record` draws of reports: leases, waits, memory, and what it cannot know."""

from __future__ import annotations

from typing import Any

import pytest

from gpushare.cli.trace.chrome import device_events
from gpushare.cli.trace.tracks import MEMORY, DeviceTracks, Event


def job(number: int, state: str = "idle", **changes: Any) -> dict[str, Any]:
    """A row of a report."""
    row = {"job": number, "name": f"j{number}", "state": state, "lane": 0, "served_seconds": 0.0}
    moved = dict.fromkeys(("spilled_total_bytes", "restored_total_bytes", "dropped_total_bytes"), 0)
    memory = {"resident_bytes": 0, "spilled_bytes": 0}
    return row | {"waiting_seconds": 0.0} | memory | moved | changes


def decided(at: float, number: int, what: str, reason: str = "", lane: int = 0) -> dict[str, Any]:
    """A decision of a report."""
    return {"at": at, "job": number, "what": what, "reason": reason, "lane": lane}


START = decided(0.5, 1, "join")


def drawn(*reports: tuple[float, list[dict[str, Any]], list[dict[str, Any]]]) -> DeviceTracks:
    """The tracks after reports: moment, jobs, decisions since the start."""
    tracks = DeviceTracks()
    for now, jobs, decisions in reports:
        tracks.add(now, {"jobs": jobs}, decisions)
    tracks.finish()
    return tracks


def slices(tracks: DeviceTracks, track: int, name: str = "lease") -> list[tuple[float, float]]:
    """Beginnings and ends."""
    return [
        (round(each.at, 6), round(each.at + each.seconds, 6))
        for each in tracks.events
        if each.kind == "slice" and each.track == track and each.name == name
    ]


def test_a_lease_ends_by_the_time_that_was_served() -> None:
    grant = decided(1.1, 1, "grant", "alone in line, by fair")
    tracks = drawn(
        (1.0, [job(1)], [START]),
        (2.0, [job(1, served_seconds=0.25)], [START, grant]),
    )
    assert slices(tracks, 1) == [(1.1, 1.35)]
    (lease,) = [each for each in tracks.events if each.name == "lease"]
    assert lease.details == {"granted": "alone in line, by fair"}


def test_leases_between_two_reports_add_up_to_what_was_served() -> None:
    grants = [
        decided(1.1, 1, "grant"),
        decided(1.3, 2, "grant"),
        decided(1.5, 1, "grant"),
        decided(1.7, 2, "grant"),
        decided(1.8, 1, "grant"),
    ]
    tracks = drawn(
        (1.0, [job(1), job(2)], [START]),
        (2.0, [job(1, "running", served_seconds=0.5), job(2)], [START, *grants]),
        (3.0, [job(1, served_seconds=0.75), job(2)], [START, *grants]),
    )
    # Up to the next grants it is 0.2 s each; 0.3 s were served before the last one.
    assert slices(tracks, 1) == [(1.1, 1.25), (1.5, 1.65), (1.8, 2.25)]
    # The other's row says that it was served no time.
    assert slices(tracks, 2) == [(1.3, 1.3), (1.7, 1.7)]


def test_a_wait_that_is_seen_begins_after_the_leases_before_it() -> None:
    grants = [decided(1.1, 1, "grant"), decided(1.5, 2, "grant"), decided(1.6, 1, "grant")]
    waiting = job(1, "waiting", served_seconds=0.6, waiting_seconds=0.2)
    tracks = drawn(
        (1.0, [job(1), job(2)], [START]),
        (2.0, [waiting, job(2)], [START, *grants]),
        (3.0, [job(1), job(2)], [START, *grants, decided(2.5, 1, "grant")]),
    )
    assert slices(tracks, 1)[:2] == [(1.1, 1.4), (1.6, 1.9)]
    assert slices(tracks, 1, "waits for a lease") == [(1.9, 2.5)]


def test_a_lost_job_is_served_until_its_process_is_gone() -> None:
    grant, gone = decided(1.5, 1, "grant"), decided(3.25, 1, "leave")
    tracks = drawn(
        (1.0, [job(1)], [START]),
        (2.0, [job(1, "running", served_seconds=0.5)], [START, grant]),
        (3.0, [job(1, "lost", served_seconds=1.5)], [START, grant]),
        (4.0, [], [START, grant, gone]),
    )
    assert slices(tracks, 1) == [(1.5, 3.25)]


def test_a_lost_job_that_gave_its_lease_back_is_served_no_more() -> None:
    grant, gone = decided(1.5, 1, "grant"), decided(3.25, 1, "leave")
    tracks = drawn(
        (1.0, [job(1)], [START]),
        (2.0, [job(1, "running", served_seconds=0.5)], [START, grant]),
        (3.0, [job(1, "lost", served_seconds=0.75)], [START, grant]),
        (4.0, [], [START, grant, gone]),
    )
    assert slices(tracks, 1) == [(1.5, 2.25)]


def test_curves_of_a_job_end_with_it() -> None:
    moved = {"spilled_total_bytes": 20, "restored_total_bytes": 10}
    tracks = drawn(
        (1.0, [job(1)], [START]),
        (2.0, [job(1, resident_bytes=30)], [START]),
        (3.0, [job(1, resident_bytes=10, spilled_bytes=20, **moved)], [START]),
        (4.0, [job(1, "lost", resident_bytes=10)], [START]),
        (5.0, [], [START]),
    )
    curves = [(each.at, each.details) for each in tracks.events if each.name == "bytes"]
    assert [(at, *figures.values()) for at, figures in curves] == [
        (1.0, 0, 0),
        (2.0, 30, 0),
        (3.0, 10, 20),
        (4.0, 10, 0),
        (5.0, 0, 0),
    ]
    # These begin when the job first moves memory. A job that has closed its part shows 0 in its
    # row, but what it moved does not become less.
    moves = [(each.at, each.details) for each in tracks.events if each.name == "total bytes"]
    assert moves == [(3.0, {"spilled": 20, "restored": 10, "dropped": 0})]


def test_lanes_and_gangs_hold_leases_side_by_side() -> None:
    grants = [
        decided(1.1, 1, "grant"),
        decided(1.2, 2, "grant", "along with 1, of the gang g"),
        decided(1.3, 3, "grant", lane=1),
    ]
    running = [job(number, "running", served_seconds=0.5) for number in (1, 2, 3)]
    tracks = drawn((1.0, [], [START]), (2.0, running, [START, *grants]))
    assert [slices(tracks, number) for number in (1, 2, 3)] == [
        [(1.1, 2.0)],
        [(1.2, 2.0)],
        [(1.3, 2.0)],
    ]


def test_a_lease_that_nobody_saw_granted_is_as_long_as_was_served() -> None:
    tracks = drawn(
        (1.0, [job(1)], [START]),
        (2.0, [job(1, "running", served_seconds=0.2)], [START]),
        (3.0, [], [START]),
    )
    assert slices(tracks, 1) == [(1.8, 3.0)]  # the job is gone: nobody says when its lease ended


def test_a_wait_begins_when_the_coordinator_says_and_ends_at_the_grant() -> None:
    waiting = job(1, "waiting", waiting_seconds=0.4)
    tracks = drawn(
        (1.0, [waiting], [START]),
        (2.0, [job(1, "running", served_seconds=0.5)], [START, decided(1.5, 1, "grant")]),
        (3.0, [job(1, "paused", served_seconds=0.5)], [START, decided(1.5, 1, "grant")]),
    )
    assert slices(tracks, 1, "waits for a lease") == [(0.6, 1.5)]
    assert slices(tracks, 1) == [(1.5, 2.0)]


def test_memory_is_asked_for_until_all_of_it_is_given() -> None:
    asked = decided(1.1, 1, "revoke", "20.0 MiB for 2")
    part = decided(1.2, 1, "released", "4.0 MiB of 20.0 MiB, more to come")
    rest = decided(1.4, 1, "released", "16.0 MiB of 20.0 MiB")
    again = decided(1.6, 1, "revoke", "1.0 MiB for 2")
    tracks = drawn(
        (1.0, [job(1, resident_bytes=20)], [START]),
        (2.0, [job(1, spilled_bytes=20)], [START, asked, part, rest, again]),
    )
    assert slices(tracks, MEMORY, "asked of j1") == [(1.1, 1.4), (1.6, 2.0)]
    assert [each.details for each in tracks.events if each.name == "bytes"] == [
        {"resident": 20, "spilled": 0},
        {"resident": 0, "spilled": 20},
    ]


def test_decisions_that_came_too_fast_are_counted_and_marked() -> None:
    tracks = drawn(
        (1.0, [job(1)], [START]),
        (2.0, [job(1)], [decided(1.1 + n / 100, 1, "ask") for n in range(64)]),
        (3.0, [job(1)], [decided(1.1 + n / 100, 1, "ask") for n in range(64)]),
    )
    assert tracks.num_gaps == 1
    marks = [each.name for each in tracks.events if each.kind == "mark"]
    assert marks == ["decisions are missing here", *["ask"] * 64]


def test_what_overlaps_on_the_memory_track_gets_a_row_of_its_own() -> None:
    tracks = DeviceTracks()
    tracks.names = {1: "a\x1b", 2: "b"}
    tracks.events = [
        Event("slice", MEMORY, "asked of a", 1.0, 1.0),
        Event("slice", MEMORY, "asked of b", 1.5, 1.0, {"given": "\x1b[0m"}),
        Event("slice", MEMORY, "asked of a", 2.0, 0.25),
    ]
    events = device_events(0, "gpushare cpu", tracks, 1.0)
    drawn_slices = [(e["ts"], e["dur"], e["tid"]) for e in events if e["ph"] == "X"]
    first, second = drawn_slices[0][2], drawn_slices[1][2]
    assert len({first, second, MEMORY, 1, 2}) == 5
    assert drawn_slices == [(0.0, 1e6, first), (5e5, 1e6, second), (1e6, 2.5e5, first)]
    assert {e["pid"] for e in events}.isdisjoint({0, 1, 2, first, second})
    titles = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert titles == {
        1: "a?",
        2: "b",
        first: "memory asked for",
        second: "memory asked for",
    }
    assert next(e for e in events if e["name"] == "asked of b")["args"] == {"given": "?[0m"}


def test_slices_of_one_track_do_not_overlap_by_rounding() -> None:
    tracks = DeviceTracks()
    ends = [0.0000012345, 0.0000024685, 0.0000037025]
    begins = [0.0, ends[0], ends[1] - 2e-7]
    tracks.events = [
        Event("slice", 1, "lease", begin, end - begin)
        for begin, end in zip(begins, ends, strict=True)
    ]
    drawn_slices = [e for e in device_events(0, "gpushare cpu", tracks, 0.0) if e["ph"] == "X"]
    edges = [(round(e["ts"] * 1e3), round((e["ts"] + e["dur"]) * 1e3)) for e in drawn_slices]
    assert edges == [(0, 1234), (1234, 2468), (2468, 3702)]


@pytest.mark.parametrize("state", ["running", "closing"])
def test_what_is_under_way_at_the_beginning_begins_there(state: str) -> None:
    old = decided(0.2, 1, "grant")
    tracks = drawn(
        (1.0, [job(1, state, served_seconds=0.8)], [old]),
        (2.0, [job(1, served_seconds=1.3)], [old]),
    )
    assert slices(tracks, 1) == [(1.0, 1.5)]
