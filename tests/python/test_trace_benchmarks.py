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
            }
            for number, policy in enumerate(policies)
        ]

    monkeypatch.setattr(runs, "run", run)


@pytest.mark.usefixtures("faster")
def test_figures_are_ratios_to_fifo_beside_the_papers() -> None:
    report = bench_trace_salus.run(quick=True)
    assert report.name == "trace_salus"
    assert report.figures == {
        "fifo_over_srtf": 2.0,
        "p95_fifo_over_srtf": 2.0,
        "fifo_over_rr": 3.0,
        "p95_fifo_over_rr": 3.0,
        "fifo_over_fair": 4.0,
        "p95_fifo_over_fair": 4.0,
        "fifo_over_pack": 5.0,
        "p95_fifo_over_pack": 5.0,
        "paper_fifo_over_srtf": 3.19,
    }
