"""docs/metrics.md has each metric, as the code has it, and no others; its unit is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpushare.cli._exporter.metric import Metric, Scope
from gpushare.cli._exporter.metrics import METRICS, UP
from tests.python.conftest import ROOT

TEXT = (ROOT / "docs" / "metrics.md").read_text()
_ROW = re.compile(r"^\| `(gpushare_\w+)` \| (\w+) \| (.*?) \| (.*?) \| (.*) \|$", re.MULTILINE)
TITLES = {
    Scope.DEVICE: "### Of a device",
    Scope.USER: "### Of a user",
    Scope.JOB: "### Of a job",
}


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`(.*?)`", text))


@pytest.mark.parametrize("scope", Scope)
def test_a_section_has_the_metrics_of_its_rows(scope: Scope) -> None:
    section = TEXT.split(TITLES[scope])[1].split("\n#")[0]
    documented = [
        (name, kind, _words(label), text, _words(fields))
        for name, kind, label, text, fields in _ROW.findall(section)
    ]
    assert documented == [
        (
            each.name,
            "counter" if each.is_counter else "gauge",
            tuple(filter(None, [each.label])),
            each.text,
            each.fields,
        )
        for each in (UP, *METRICS)
        if each.scope is scope
    ]
    assert set(scope.value) <= set(_words(section.split("\n\n")[1]))


DEVICE: dict[str, Any] = {
    "device": "cuda:GPU-1",
    "coordinator": {"version": "1.2", "uptime_seconds": 61.0},
    "warnings": [{"text": "w"}],
    "unmanaged": [{"pid": 3, "resident_bytes": 5}],
    "policy": "fair",
    "capacity_bytes": 100,
    "free_bytes": 9,
    "withheld_bytes": 8,
    "lanes": [{"pool_bytes": 7, "holder": 1}],
    "jobs": [{"resident_bytes": 6, "spilled_bytes": 4, "state": "running"}],
    "host_used_bytes": 30,
    "host_file_used_bytes": 10,
    "host_budget_bytes": 300,
    "host_file_budget_bytes": 100,
    "busy": 0.5,
    "switches": 11,
    "last_handover_seconds": 0.25,
    "spilled_total_bytes": 12,
    "dropped_total_bytes": 13,
    "jobs_without_series": 0,
}


def _reduced(row: Any, fields: tuple[str, ...]) -> Any:
    """A row with nothing in it but these fields."""
    if isinstance(row, list):
        return [_reduced(each, fields) for each in row]
    inner: dict[str, list[str]] = {}
    for field in fields:
        first, _, rest = field.partition(".")
        inner.setdefault(first, []).append(rest)
    return {
        name: _reduced(row[name], tuple(filter(None, rest))) if any(rest) else row[name]
        for name, rest in inner.items()
    }


@pytest.mark.parametrize(
    "metric", [m for m in METRICS if m.scope is Scope.DEVICE], ids=lambda m: m.name
)
def test_a_device_s_metric_is_computed_from_the_fields_that_it_names(metric: Metric) -> None:
    values = metric.read(DEVICE)
    assert values
    assert None not in values.values()
    # All fields that the row has to have are there, empty, where the metric does not name them.
    lists = {"jobs": [], "lanes": []} if "." in "".join(metric.fields) else {}
    assert metric.read({**lists, **_reduced(DEVICE, metric.fields)}) == values


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    (text,) = re.findall(r"```ini\n(.*?)```", TEXT, re.DOTALL)
    unit = tmp_path / "gpushare-exporter.service"
    unit.write_text(text.replace("/opt/gpushare/bin/gpushare", "/bin/true"))
    ended = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout + ended.stderr) == (0, "")
