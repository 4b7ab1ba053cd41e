"""What tests of the exporter share: collectors in this process, and reports of many jobs."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from gpushare.cli._exporter.asking import Asked, Coordinators
from gpushare.cli._exporter.collector import CoordinatorCollector
from gpushare.cli._targets.coordinators import DeviceSockets
from tests.python.fake_coordinator import make_job, make_report

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def series_of(text: str) -> Series:
    """The values of a scrape by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float:
    """The one series of that name that has these labels, and maybe others."""
    found = [
        each
        for (series_name, all_labels), each in series.items()
        if series_name == name and labels.items() <= dict(all_labels).items()
    ]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return found[0]


def names(series: Series) -> set[str]:
    """The metrics that have any series."""
    return {name for name, _ in series}


class Scraped:
    """An exporter in this process, beside the sockets of a test."""

    def __init__(self, *sockets: DeviceSockets) -> None:
        """It always asks at all these sockets."""
        self.said: list[str] = []
        self._registry = CollectorRegistry()
        coordinators = Coordinators(lambda: list(sockets), is_named=True)
        self._registry.register(CoordinatorCollector(coordinators, self.said.append))

    def text(self) -> str:
        """What Prometheus would read."""
        return generate_latest(self._registry).decode()

    def series(self) -> Series:
        """The same, read."""
        return series_of(self.text())


class Canned(Coordinators):
    """Coordinators whose next answers are given to it."""

    def __init__(self, *reports: dict[str, Any]) -> None:
        """One device, cpu."""
        super().__init__(list, is_named=True)
        self.reports = list(reports)

    def ask(self) -> list[Asked]:
        """The next of the reports."""
        return [Asked(DeviceSockets("cpu", []), self.reports.pop(0))]


def scrapes(*reports: dict[str, Any]) -> list[Series]:
    """What an exporter says after each of these reports of one coordinator."""
    registry = CollectorRegistry()
    registry.register(CoordinatorCollector(Canned(*reports), print))
    return [series_of(generate_latest(registry).decode()) for _ in reports]


def report_of(*jobs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A report with these jobs."""
    report = make_report(**changes)
    report["coordinator"]["epoch"] = 1
    report["devices"][0]["jobs"] = list(jobs)
    return report


def full_job(number: int = 3, name: str = "gpt", **changes: Any) -> dict[str, Any]:
    """A row with all that a present coordinator says and the exporter reads."""
    counted = {
        "state": "running",
        "served_seconds": 12.5,
        "waited_seconds": 4.25,
        "waiting_seconds": 0.5,
        "leases": 7,
        "busy_seconds": 11.0,
        "lane_bytes": 1 << 20,
        "spilled_total_bytes": 3 << 20,
        "restored_total_bytes": 2 << 20,
        "dropped_total_bytes": 1 << 20,
    }
    return make_job(number, name, **counted | changes)
