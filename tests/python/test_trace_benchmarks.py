"""The benchmarks on traces: what their figures are called, and what they leave out."""

from __future__ import annotations

import pytest

from benchmarks import bench_trace_salus, traces
from gpushare.simulate import runs


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Policies that the module says it has; runs do nothing but tell which were asked for."""
    names = ["fifo", "srtf"]

    class Module:
        @staticmethod
        def policy_names() -> list[str]:
            return names

    def run(_trace: str, policies: list[str], _machine: dict[str, str]) -> list[dict[str, object]]:
        return [
            {
                "policy": policy,
                "completion_seconds": dict.fromkeys(runs.COMPARED, 10.0 / (1 + number)),
            }
            for number, policy in enumerate(policies)
        ]

    monkeypatch.setattr(runs, "native", Module)
    monkeypatch.setattr(runs, "run", run)
    return names


def test_figures_are_ratios_to_fifo_beside_the_papers(known: list[str]) -> None:
    report = bench_trace_salus.run(quick=True)
    assert report.name == "trace_salus"
    assert report.figures == {
        "fifo_over_srtf": 2.0,
        "p95_fifo_over_srtf": 2.0,
        "paper_fifo_over_srtf": 3.19,
    }


def test_a_policy_that_is_missing_is_named(known: list[str]) -> None:
    notes = bench_trace_salus.run(quick=True).notes
    left_out = [note.split(" ")[0] for note in notes if "left out" in note]
    assert left_out == [name for name in traces.POLICIES if name not in known]
