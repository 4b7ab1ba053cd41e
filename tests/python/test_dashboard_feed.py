"""The dashboard's readings: one for all pages, and a timeline that forgets what is old."""

from __future__ import annotations

import asyncio
from typing import Any

from gpushare.cli._exporter.asking import Asked
from gpushare.cli._targets.coordinators import DeviceSockets
from gpushare.cli.dashboard.feed import Feed
from gpushare.cli.dashboard.timeline import WINDOW_SECONDS, Timeline
from tests.python.dashboard_kit import report_at
from tests.python.exporter_kit import Canned

GRANT = {"job": 3, "what": "grant", "reason": "first", "seconds_ago": 0.5}


def add(timeline: Timeline, reading: int, report: dict[str, Any]) -> None:
    timeline.add(reading, report, report["devices"][0])


def test_many_pages_share_one_reading() -> None:
    canned = Canned(report_at(1.0), report_at(2.0))
    feed = Feed(canned)

    async def look() -> list[Any]:
        reading = asyncio.create_task(feed.run())
        pages = await asyncio.gather(*(feed.next(0) for _ in range(5)))
        reading.cancel()
        return pages

    pages = asyncio.run(look())
    assert [page["reading"] for page in pages] == [1] * 5
    assert len(canned.reports) == 1


def test_a_fault_ends_all_pages_and_is_not_lost() -> None:
    feed = Feed(Canned(report_at(1.0)))  # the second reading finds nothing to give
    ended = []
    feed.on_error = lambda: ended.append(True)

    async def look() -> list[Any]:
        reading = asyncio.create_task(feed.run())
        pages = [await feed.next(0), await feed.next(1)]
        await reading
        return pages

    first, second = asyncio.run(look())
    assert (first["reading"], second, ended) == (1, None, [True])
    assert isinstance(feed.error, IndexError)


def test_a_page_gets_the_whole_window_and_then_what_is_new() -> None:
    timeline = Timeline()
    add(timeline, 1, report_at(1.0, state="idle", waiting_seconds=0.0))
    add(timeline, 2, report_at(2.0, GRANT, waiting_seconds=0.0))
    assert timeline.since(1)["under_way"] == [(3, 0, 1.5, 0.5)]
    add(timeline, 3, report_at(3.0, state="waiting", waiting_seconds=0.25, served_seconds=13.0))
    whole = timeline.since(0)
    assert [each[0] for each in whole["memory"]] == [1.0, 2.0, 3.0]
    assert [each[:3] for each in whole["slices"]] == [(3, 0, 1.5)]
    assert whole["under_way"] == [(3, 1, 2.75, 0.25)]
    assert [each[0] for each in timeline.since(2)["memory"]] == [3.0]
    assert timeline.since(3)["slices"] == []
    assert "names" not in timeline.since(2)


def test_what_is_older_than_the_window_is_forgotten() -> None:
    timeline = Timeline()
    add(timeline, 1, report_at(1.0, state="idle", waiting_seconds=0.0))
    add(timeline, 2, report_at(2.0, GRANT, waiting_seconds=0.0))
    gone = report_at(3.0)
    gone["devices"][0]["jobs"] = []
    add(timeline, 3, gone)
    assert list(timeline.since(0)["names"]) == [3]
    gone["coordinator"]["uptime_seconds"] = 4.0 + WINDOW_SECONDS
    add(timeline, 4, gone)
    assert timeline.since(0) | {"now": 0} == {
        "now": 0,
        "slices": [],
        "under_way": [],
        "memory": [(4.0 + WINDOW_SECONDS, 0, 0, 1 << 29)],
        "names": {},
    }


def test_a_coordinator_that_says_less_costs_only_its_timeline() -> None:
    report = report_at(1.0)
    del report["coordinator"]["uptime_seconds"]
    feed = Feed(Canned())
    feed.take([Asked(DeviceSockets("cpu", []), report)])
    page = feed.page(0)
    assert "timeline" not in page["devices"][0]
    assert "earlier version" in page["notes"][0]["text"]
    feed.take([Asked(DeviceSockets("cpu", []), {"devices": [{}]})])
    assert "lacks what is expected" in feed.page(0)["notes"][0]["text"]
