"""The benchmarks on traces: what their figures are, and how they are called."""

from __future__ import annotations

import pytest

from benchmarks import bench_trace_salus
from gpushare.simulate import runs


@pytest.fixture
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each policy that is asked for is as much faster as its place in line."""

    def run(_trace: str, policies: list[str], _machine: dict[str, str]) -> list[dict[str, object]]:
        return [
            {
                "policy": policy,
                "completion_seconds": dict.fromkeys(runs.COMPARED, 10.0 / (1 + number)),
                "wait_seconds": {"worst": 3600.0 * number},
            }
            for number, policy in enumerate(policies)
        ]

    monkeypatch.setattr(runs, "run", run)


@pytest.mark.usefixtures("faster")
def test_figures_are_ratios_to_fifo_beside_the_papers() -> None:
    report = bench_trace_salus.run(quick=True)
    assert report.name == "trace_salus"
    figures = {}
    for prefix in ("", "spread_"):
        for number, policy in enumerate(("fifo", "srtf", "rr", "fair", "pack")):
            figures[f"{prefix}worst_wait_{policy}_hours"] = float(number)
        for policy, ratio in (("srtf", 2.0), ("rr", 3.0), ("fair", 4.0), ("pack", 5.0)):
            for figure in ("", "p95_"):
                figures[f"{prefix}{figure}fifo_over_{policy}"] = ratio
    assert report.figures == figures | {"paper_fifo_over_srtf": 3.19}
