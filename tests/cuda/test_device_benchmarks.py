"""The device benchmarks run, and write figures: on the fake device, with tiny sizes."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from benchmarks import processes
from benchmarks.device import goals, run
from tests.support.job_process import JobProcess

# On a device without clocks a difference may be anything.
ANY_SIGN = {("inference", "added_ms"), ("inference", "added_p95_ms")}


# Minutes without a device's kernels; `scripts/device_suite` rehearses it.
TOO_LONG = {"two_jobs"}


@pytest.mark.parametrize("name", [name for name in run.NAMES if name not in TOO_LONG])
def test_it_measures(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "figures.json"
    words = ["benchmarks.device.run", name, "--quick", "--json", str(path)]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setenv("DEVICE_SUITE_FAKE", "1")
    monkeypatch.setattr(processes.JobProcess, "_start", staticmethod(JobProcess._start))
    run.main()
    (report,) = json.loads(path.read_text())["reports"]
    assert report["name"] == name
    assert report["figures"]
    for figure, value in report["figures"].items():
        assert math.isfinite(value), figure
        assert value > 0 or (name, figure) in ANY_SIGN, figure
    assert set(report["goals"]) == {
        figure for benchmark, figure in goals.KNOWN if benchmark == name
    }
