"""What a metric is: a name, labels, and how a coordinator's report gives its values.

A metric belongs to a scope, which is one kind of row of a report: a device, or a user or a job of
it. The scope decides the labels; a metric may have one label more.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

Row = dict[str, Any]
"""A device, user or job of ``gpushare status --json``, with what ``rows.py`` adds."""


class Scope(Enum):
    """What a metric is about; the value is the labels that all its metrics have."""

    DEVICE = ("device",)
    USER = ("device", "user")
    JOB = ("device", "job_number", "job_name", "user")


class Metric(NamedTuple):
    """One metric."""

    name: str
    """With its unit, and with ``_total`` where it is a counter."""
    scope: Scope
    text: str
    """The help that Prometheus shows."""
    fields: tuple[str, ...]
    """What of the scope's row it is computed from; a path where it is below."""
    read: Callable[[Row], Row]
    """Gives the values by the value of ``label``; None for what the report does not say."""
    label: str = ""
    """The label that it has beside the scope's; "" for none."""

    @property
    def is_counter(self) -> bool:
        """Whether it only grows."""
        return self.name.endswith("_total")

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of all its labels."""
        return (*self.scope.value, *filter(None, [self.label]))


def plain(name: str, scope: Scope, field: str, text: str) -> Metric:
    """A metric that is a field of the row."""
    return Metric(name, scope, text, (field,), lambda row: {"": row.get(field)})


def split(name: str, scope: Scope, label: str, parts: dict[str, str], text: str) -> Metric:
    """A metric with a field of the row for each value of a label."""
    fields = tuple(parts.values())
    return Metric(
        name, scope, text, fields, lambda row: {part: row.get(parts[part]) for part in parts}, label
    )
