"""What Prometheus' library asks at each scrape: one report of each coordinator, as metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gpushare.cli._exporter.asking import Asked
from gpushare.cli._exporter.counters import JobCounters
from gpushare.cli._exporter.metrics import METRICS, UP
from gpushare.cli._exporter.rows import LabelledRow, label_text, labelled_rows
from gpushare.cli._targets.coordinators import Answer, lacking_text, without_doubles
from gpushare.printable import printable

if TYPE_CHECKING:
    from gpushare.cli._exporter import metric
    from gpushare.cli._exporter.asking import Coordinators
    from gpushare.cli._exporter.metric import Row


class CoordinatorCollector(Collector):
    """Several threads may collect at once."""

    def __init__(self, coordinators: Coordinators, say: Callable[[str], None]) -> None:
        """Asks nobody yet.

        Args:
            coordinators: Whom to ask.
            say: Takes a line when a coordinator is found not to answer, or answers again.
        """
        self._coordinators = coordinators
        self._say = say
        self._said: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._counters = JobCounters()
        self._lock = threading.Lock()

    def describe(self) -> Iterable[Metric]:
        """Returns all metrics without samples, so that nobody is asked at the start."""
        return _Families().all()

    def collect(self) -> Iterator[Metric]:
        """Asks each coordinator once, and returns all metrics."""
        asked = self._coordinators.ask()
        with self._lock:
            families = self._families(asked)
        yield from families.all()

    def _families(self, asked: list[Asked]) -> _Families:
        families = _Families()
        checked = [_checked(each) for each in asked]
        for each in checked:
            device = self._device_of(each)
            self._say_changes(device, each.why_not)
            families.add(UP, (device,), {"": each.report is not None})
        answers = [Answer(each.sockets, each.report) for each in checked if each.report is not None]
        for report in without_doubles(answers):
            rows = list(labelled_rows(report))
            for row, of, values in _values(rows):
                families.add(of, row.labels, self._not_lower(row, of, values))
            for device in {row.labels[0] for row in rows}:
                jobs = {row.job for row in rows if row.job is not None}
                self._counters.forget_others(device, jobs)
        return families

    def _device_of(self, asked: Asked) -> str:
        """The device's name; where a setting names the socket, what answered there last says it."""
        if asked.report is not None and asked.report["devices"]:
            self._names[asked.sockets.device] = asked.report["devices"][0]["device"]
        return label_text(self._names.get(asked.sockets.device, asked.sockets.device))

    def _not_lower(self, row: LabelledRow, of: metric.Metric, values: Row) -> Row:
        """The values; a job's counters as high at least as they were."""
        if row.job is None or not of.is_counter:
            return values
        return {
            part: self._counters.next_value(row.job, (of.name, part), value, row.row["state"])
            for part, value in values.items()
            if _is_number(value)
        }

    def _say_changes(self, device: str, why_not: str) -> None:
        if self._said.get(device, "") == why_not:
            return
        self._said[device] = why_not
        self._say(printable(f"{device or 'coordinator'}: {why_not or 'answers'}"))


class _Families:
    """The metrics of one scrape, in the library's form."""

    def __init__(self) -> None:
        self._families = {each.name: _family(each) for each in (UP, *METRICS)}
        self._series: set[tuple[str, tuple[str, ...]]] = set()

    def add(self, of: metric.Metric, labels: tuple[str, ...], values: Row) -> None:
        """Adds the values that are numbers; of two coordinators of one device the first counts."""
        for part, value in values.items():
            all_labels = (*labels, label_text(part)) if of.label else labels
            if _is_number(value) and (of.name, all_labels) not in self._series:
                self._series.add((of.name, all_labels))
                self._families[of.name].add_metric(all_labels, float(value))

    def all(self) -> Iterable[Metric]:
        """All of them, in the order of the table."""
        return self._families.values()


def _family(of: metric.Metric) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if of.is_counter else GaugeMetricFamily
    return kind(of.name, of.text, labels=of.labels)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _values(rows: list[LabelledRow]) -> Iterator[tuple[LabelledRow, metric.Metric, Row]]:
    for row in rows:
        for of in METRICS:
            if of.scope is row.scope:
                yield row, of, of.read(row.row)


def _checked(asked: Asked) -> Asked:
    """The same; without the report if it lacks what every coordinator says."""
    if asked.report is None:
        return asked
    try:
        (report,) = without_doubles([Answer(asked.sockets, asked.report)])
        for _ in _values(list(labelled_rows(report))):
            pass
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return Asked(asked.sockets, None, lacking_text(error))
    return asked
