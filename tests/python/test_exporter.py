"""``gpushare exporter``: what it says of a report, and that nothing that others do disturbs it."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpushare.cli._exporter import asking
from gpushare.cli._exporter.metrics import METRICS
from gpushare.cli._exporter.rows import MOST_JOBS, MOST_LABEL
from gpushare.cli._targets.coordinators import DeviceSockets
from tests.python.exporter_kit import Scraped, full_job, names, report_of, scrapes, value
from tests.python.fake_coordinator import FakeCoordinator, make_report

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is missing: apt-get install prometheus"
)


def test_says_who_holds_who_waits_and_where_the_bytes_are(tmp_path: Path) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        series = Scraped(DeviceSockets("cpu", [fake.path])).series()
        assert len(fake.requests) == 1
    assert value(series, "gpushare_up", device="cpu") == 1
    assert value(series, "gpushare_job_holds_lease", job_name="gpt", user="4000001") == 1
    assert value(series, "gpushare_job_holds_lease", job_name="vit") == 0
    assert value(series, "gpushare_jobs", state="waiting") == 1
    assert value(series, "gpushare_jobs", state="paused") == 0
    assert value(series, "gpushare_device_memory_bytes", state="resident") == 1200 << 20
    assert value(series, "gpushare_device_memory_bytes", state="spilled") == 300 << 20
    assert value(series, "gpushare_unmanaged_memory_bytes") == 2200 << 20
    assert value(series, "gpushare_job_iterations_total", job_number="5") == 120
    # A coordinator of an earlier version does not say it; nobody is told a 0.
    assert "gpushare_job_wait_seconds_total" not in names(series)


@needs_promtool
def test_promtool_finds_nothing(tmp_path: Path) -> None:
    device = {"withheld_bytes": 0, "spilled_total_bytes": 1, "dropped_total_bytes": 2}
    users = [{"uid": 0, "name": "", "memory_bytes": 1, "memory_limit_bytes": 0, "share_limit": 0.5}]
    report = report_of(full_job())
    report["devices"][0] |= device | {"users": users, "device": "cuda:GPU-1"}
    report["coordinator"]["uptime_seconds"] = 3.0
    with FakeCoordinator(tmp_path / "sock", report) as fake:
        text = Scraped(DeviceSockets("", [fake.path])).text()
    assert all(f"\n{each.name}{{" in text for each in METRICS)
    ended = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")


def test_a_coordinator_that_never_answers_costs_its_own_metrics_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ANSWER_SECONDS", 0.2)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent,
        FakeCoordinator(tmp_path / "cpu", make_report()) as fake,
    ):
        silent.bind(str(tmp_path / "gpu"))
        silent.listen()
        sockets = [
            DeviceSockets("cuda:GPU-1", [str(tmp_path / "gpu")]),
            DeviceSockets("cpu", [fake.path]),
        ]
        scraped = Scraped(*sockets)
        series = [scraped.series() for _ in range(2)]
    for each in series:
        assert value(each, "gpushare_up", device="cuda:GPU-1") == 0
        assert value(each, "gpushare_up", device="cpu") == 1
        assert value(each, "gpushare_jobs", device="cpu", state="running") == 1
    (line,) = scraped.said  # once, and not at each scrape
    assert line.startswith("cuda:GPU-1: the coordinator at")
    assert "did not answer" in line


def test_a_coordinator_that_ends_is_0_and_is_1_again_later(tmp_path: Path) -> None:
    scraped = Scraped(DeviceSockets("", [str(tmp_path / "sock")]))
    assert value(scraped.series(), "gpushare_up", device="") == 0
    with FakeCoordinator(tmp_path / "sock", make_report()):
        assert value(scraped.series(), "gpushare_up", device="cpu") == 1
    series = scraped.series()
    assert names(series) == {"gpushare_up"}
    assert value(series, "gpushare_up", device="cpu") == 0  # the name of who was there
    assert [line.split(":")[0] for line in scraped.said] == ["coordinator", "cpu"]


def test_a_folder_that_cannot_be_looked_into_hides_no_other_coordinator(tmp_path: Path) -> None:
    # As one that may not be entered, which root could: the system refuses the look itself.
    unseen = str(tmp_path / ("x" * 300) / "sock")
    with FakeCoordinator(tmp_path / "sock", make_report()) as fake:
        sockets = [DeviceSockets("cpu", [unseen, fake.path])]
        (asked,) = asking.Coordinators(lambda: sockets, is_named=False).ask()
    assert asked.report is not None, asked.why_not


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"devices": [{}]}, "is no coordinator of protocol 1"),
        ({"devices": 3}, "is no coordinator of protocol 1"),
        ({"coordinator": None}, "the report lacks what is expected of it"),
        ({"unmanaged": [{}]}, "the report lacks what is expected of it"),
    ],
)
def test_a_report_that_is_none_is_as_no_answer(
    broken: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with FakeCoordinator(tmp_path / "sock", make_report(**broken)) as fake:
        scraped = Scraped(DeviceSockets("cpu", [fake.path]))
        assert names(scraped.series()) == {"gpushare_up"}
    (line,) = scraped.said
    assert said in line


def test_counters_do_not_go_back_while_the_job_lives() -> None:
    counted = {"iterations": 100, "served_seconds": 9.0, "spilled_total_bytes": 50}
    less = {"iterations": 99, "served_seconds": 8.5, "spilled_total_bytes": 0}
    more = {"iterations": 103, "served_seconds": 9.5, "spilled_total_bytes": 60}
    first, second, lost, last = scrapes(
        report_of(full_job(**counted)),
        report_of(full_job(**less)),
        report_of(full_job(**less | {"state": "lost"})),
        report_of(full_job(**more)),
    )
    for series in (first, second, lost):
        assert value(series, "gpushare_job_iterations_total") == 100
        assert value(series, "gpushare_job_lease_seconds_total") == 9.0
        assert value(series, "gpushare_job_moved_bytes_total", how="spilled") == 50
    assert value(last, "gpushare_job_iterations_total") == 103
    assert value(last, "gpushare_job_moved_bytes_total", how="spilled") == 60


def test_what_the_coordinator_cannot_know_yet_is_not_said() -> None:
    restarted = report_of(full_job(state="lost", iterations=0, served_seconds=0.0))
    restarted["coordinator"]["epoch"] = 2
    before, after = scrapes(report_of(full_job(iterations=100)), restarted)
    assert value(before, "gpushare_job_iterations_total") == 100
    assert "gpushare_job_iterations_total" not in names(after)
    # The coordinator counts this one itself, from its start on.
    assert value(after, "gpushare_job_lease_seconds_total") == 0


def test_a_job_that_ends_is_gone_and_the_next_one_begins_anew() -> None:
    job = full_job(iterations=100)
    _, none, anew = scrapes(report_of(job), report_of(), report_of(job | {"iterations": 5}))
    assert "gpushare_job_iterations_total" not in names(none)
    assert value(anew, "gpushare_job_iterations_total") == 5


def test_names_are_short_and_printable() -> None:
    (series,) = scrapes(
        report_of(full_job(3, "x\x1b[31m\n" + "y" * 200 + "-run7"), full_job(4, 'a"b\\'))
    )
    (long, quoted) = sorted(
        (dict(labels)["job_name"] for name, labels in series if name.endswith("_holds_lease")),
        key=len,
        reverse=True,
    )
    assert len(long) == MOST_LABEL
    assert long == "x?[31m?" + "y" * (MOST_LABEL - 39) + "~" + "y" * 26 + "-run7"
    assert quoted == 'a"b\\'


def test_of_many_jobs_the_oldest_have_series_and_all_count() -> None:
    jobs = [full_job(number, "same") for number in range(MOST_JOBS + 50, 0, -1)]
    (series,) = scrapes(report_of(*jobs, jobs_left_out=7))
    numbers = {
        int(dict(labels)["job_number"]) for name, labels in series if name.endswith("_holds_lease")
    }
    assert numbers == set(range(1, MOST_JOBS + 1))
    assert value(series, "gpushare_jobs_without_series") == 57
    assert value(series, "gpushare_jobs", state="running") == MOST_JOBS + 50


def test_a_process_that_is_a_job_elsewhere_is_not_unmanaged(tmp_path: Path) -> None:
    gpu = make_report()
    gpu["devices"][0] |= {"device": "cuda:GPU-1", "jobs": [full_job(1, pid=4242)]}
    gpu["unmanaged"] = []
    with (
        FakeCoordinator(tmp_path / "cpu", make_report()) as one,
        FakeCoordinator(tmp_path / "gpu", gpu) as other,
    ):
        series = Scraped(
            DeviceSockets("cpu", [one.path]), DeviceSockets("cuda:GPU-1", [other.path])
        ).series()
    assert value(series, "gpushare_unmanaged_processes", device="cpu") == 0
    assert value(series, "gpushare_device_uuid_info") == 1
    assert value(series, "gpushare_device_uuid_info", UUID="GPU-1", device="cuda:GPU-1") == 1
